"""What can be done with certificates: functions on the certificate database that panel, commands and actions share."""
