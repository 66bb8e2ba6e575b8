"""The manifest of the certificates plugin."""

from __future__ import annotations

from labconsole.plugin import Plugin, PluginPage

plugin = Plugin(
    name="certificates",
    title="Certificates",
    description="Can two (or forty) States trust each other without a common CA, rotate and revoke?",
    actions={
        "certificates.create-root": "labconsole_certificates.actions.authority_actions:CreateRoot",
        "certificates.create-intermediate": "labconsole_certificates.actions.authority_actions:CreateIntermediate",
        "certificates.import-authority": "labconsole_certificates.actions.authority_actions:ImportAuthority",
        "certificates.make-request": "labconsole_certificates.actions.request_actions:MakeRequest",
        "certificates.approve-request": "labconsole_certificates.actions.request_actions:ApproveRequest",
        "certificates.self-signed": "labconsole_certificates.actions.end_certificate_actions:MakeSelfSigned",
        "certificates.make-for-client": "labconsole_certificates.actions.end_certificate_actions:MakeForClient",
        "certificates.import-pkcs12": "labconsole_certificates.actions.end_certificate_actions:ImportPkcs12",
        "certificates.export-pkcs12": "labconsole_certificates.actions.end_certificate_actions:ExportPkcs12",
        "certificates.publish-crl": "labconsole_certificates.actions.revocation_actions:PublishCrl",
        "certificates.serve-ocsp": "labconsole_certificates.actions.revocation_actions:ServeOcsp",
        "certificates.make-bundle": "labconsole_certificates.actions.exchange_actions:MakeBundle",
        "certificates.prove": "labconsole_certificates.actions.exchange_actions:Prove",
        "certificates.rotation-begin": "labconsole_certificates.actions.rotation_actions:BeginRotation",
        "certificates.rotation-prepare": "labconsole_certificates.actions.rotation_actions:PrepareRotation",
        "certificates.rotation-adopt": "labconsole_certificates.actions.rotation_actions:AdoptSuccessor",
        "certificates.rotation-confirm": "labconsole_certificates.actions.rotation_actions:ConfirmRotation",
        "certificates.rotation-switch": "labconsole_certificates.actions.rotation_actions:SwitchRotation",
        "certificates.rotation-finish": "labconsole_certificates.actions.rotation_actions:FinishRotation",
        "certificates.rotation-cancel": "labconsole_certificates.actions.rotation_actions:CancelRotation",
    },
    pages={
        "certificates": PluginPage(
            title="Certificates",
            factory="labconsole_certificates.panel.page:CertificatesPage",
            opens=(
                *(".pem", ".der", ".crt", ".cer", ".key", ".p8", ".p12", ".pfx", ".csr", ".p10", ".req", ".crl"),
                *(".cms", ".p7b", ".p7c", ".bundle"),
            ),
        )
    },
)
