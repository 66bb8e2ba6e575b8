"""Messages of the signing service: sign requests (OASIS DSS, csig), their answers, frames between its processes."""
