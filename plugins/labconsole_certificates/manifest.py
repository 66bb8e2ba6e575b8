"""The manifest of the certificates plugin."""

from __future__ import annotations

from labconsole.model.plugin import OperationEntry, Plugin, PluginPage


def _operation(target: str, command: str = "", help: str = "") -> OperationEntry:
    """An operation of this package."""
    return OperationEntry(f"labconsole_certificates.{target}", command, help)


plugin = Plugin(
    name="certificates",
    title="Certificates",
    description="Can two (or forty) States trust each other without a common CA, rotate and revoke?",
    operations={
        "certificates.states": _operation("operations.states:ListStates", "pki states", "list the States"),
        "certificates.add-state": _operation("operations.states:AddState", "pki add-state", "add a State"),
        "certificates.domain": _operation(
            "operations.states:ClaimDomain", "pki domain", "let a State claim other DNS domains"
        ),
        "certificates.create-root": _operation(
            "operations.authorities:CreateRoot", "pki create-root", "create a State's root CA"
        ),
        "certificates.create-intermediate": _operation(
            "operations.authorities:CreateIntermediate", "pki create-intermediate", "create a CA below another"
        ),
        "certificates.import-authority": _operation(
            "operations.authorities:ImportAuthority", "pki import-ca", "import a CA with its private key"
        ),
        "certificates.make-request": _operation(
            "operations.own_csrs:CreateRequest", "pki request", "create a key pair and a CSR for the CA of a State"
        ),
        "certificates.requests": _operation(
            "operations.received_csrs:ListRequests", "pki requests", "list the CSRs that were created and received"
        ),
        "certificates.take-csr": _operation(
            "operations.received_csrs:ImportRequest", "pki take-csr", "import another State's CSR"
        ),
        "certificates.approve-request": _operation(
            "operations.received_csrs:ApproveRequest", "pki approve", "issue the certificate that a CSR asks for"
        ),
        "certificates.refuse": _operation(
            "operations.received_csrs:RefuseRequest", "pki refuse", "refuse a CSR, with the reason"
        ),
        "certificates.take-certificate": _operation(
            "operations.own_csrs:ImportCertificate",
            "pki take-certificate",
            "import the certificate that was issued for a CSR created here",
        ),
        "certificates.self-signed": _operation(
            "operations.self_signed:CreateSelfSigned",
            "pki self-signed",
            "create a self-signed end certificate, for peers to pin",
        ),
        "certificates.make-for-client": _operation(
            "operations.no_csr:CreateForClient",
            "pki make-for",
            "create key and certificate for another State (No-CSR method)",
        ),
        "certificates.import-pkcs12": _operation(
            "operations.no_csr:ImportPkcs12", "pki take-p12", "import key and certificate from a PKCS#12"
        ),
        "certificates.name": _operation(
            "operations.identity_names:NameIdentity", "pki name", "give a certificate with its key a name for trials"
        ),
        "certificates.identities": _operation(
            "operations.identity_names:ListIdentities", "pki identities", "list what trials take by name"
        ),
        "certificates.forget": _operation(
            "operations.identity_names:ForgetIdentity", "pki forget", "free the name of an identity"
        ),
        "certificates.export-pkcs12": _operation("operations.export:ExportPkcs12"),
        "certificates.revoke": _operation("revocation.crl_operations:Revoke", "pki revoke", "revoke a certificate"),
        "certificates.publish-crl": _operation(
            "revocation.crl_operations:PublishCrl", "pki publish-crl", "sign a new CRL"
        ),
        "certificates.crls": _operation("revocation.crl_operations:ListCrls", "pki crls", "list the CRLs"),
        "certificates.serve-ocsp": _operation(
            "revocation.ocsp_responder:ServeOcsp", "pki ocsp", "answer OCSP requests until Ctrl+C"
        ),
        "certificates.ask-ocsp": _operation(
            "revocation.ocsp_check:AskOcsp", "pki ask-ocsp", "ask an OCSP responder about a certificate"
        ),
        "certificates.remove": _operation("operations.removal:Remove", "pki remove", "hide a certificate"),
        "certificates.restore": _operation(
            "operations.removal:Restore", "pki restore", "show a hidden certificate again"
        ),
        "certificates.remove-key-files": _operation(
            "operations.removal:RemoveKeyFiles",
            "pki remove-key-files",
            "remove key files that a killed process has left, which no certificate needs",
        ),
        "certificates.take": _operation(
            "operations.certificate_import:Import", "pki take", "import certificates or a CRL of another State"
        ),
        "certificates.trust": _operation(
            "trust.roots_and_pins:TrustRoot", "pki trust", "let a State trust a root, once its fingerprint is confirmed"
        ),
        "certificates.pin": _operation(
            "trust.roots_and_pins:Pin", "pki pin", "let a State trust one end certificate by its fingerprint"
        ),
        "certificates.withdraw": _operation(
            "trust.roots_and_pins:WithdrawTrust", "pki withdraw", "end a State's trust in a root or certificate"
        ),
        "certificates.make-bundle": _operation(
            "trust.bundle_creation:MakeBundle", "pki bundle", "write a State's signed trust bundle"
        ),
        "certificates.take-bundle": _operation(
            "trust.bundle_import:ImportBundle", "pki take-bundle", "import another State's trust bundle"
        ),
        "certificates.matrix": _operation("trust.matrix:ShowMatrix", "pki matrix", "show who trusts whom"),
        "certificates.exchange": _operation(
            "exchange.progress:ShowExchange", "pki exchange", "show how far the exchange between two States is"
        ),
        "certificates.exchange-step": _operation(
            "exchange.step_execution:DoExchangeStep",
            "pki exchange-step",
            "do the next step of the exchange between two States of this console",
        ),
        "certificates.prove": _operation(
            "exchange.tls_proof:Prove", "pki prove", "connect two States by TLS, both ways"
        ),
        "certificates.connect": _operation(
            "exchange.remote_tls_proof:Connect",
            "pki connect",
            "connect a State to the server of a State elsewhere, by TLS",
        ),
        "certificates.listen": _operation(
            "exchange.remote_tls_proof:Listen", "pki listen", "wait for the connection of a State elsewhere, by TLS"
        ),
        "certificates.list": _operation(
            "operations.listing:ListCertificates", "pki list", "list the certificates with their status"
        ),
        "certificates.show": _operation(
            "operations.inspection:Show", "pki show", "show everything of a certificate, CSR, CRL, key or file"
        ),
        "certificates.compare": _operation(
            "operations.inspection:Compare", "pki compare", "show the differences between two certificates or files"
        ),
        "certificates.check": _operation(
            "trust.acceptance_check:Check", "pki check", "check whether a State accepts a certificate, and why not"
        ),
        "certificates.export": _operation(
            "operations.export:Export", "pki export", "write a certificate, CSR or CRL to a file"
        ),
        "certificates.note-export": _operation(
            "operations.export:NoteExport", "pki note-export", "note that certificates, CSRs or CRLs were sent"
        ),
        "certificates.audit": _operation("operations.listing:Audit", "pki audit", "list who did what, and when"),
        "certificates.demo": _operation(
            "demo.exchange_demo:Demo",
            "pki demo",
            "let States exchange CSRs and trust bundles, and prove every directed pair by a TLS handshake",
        ),
        "certificates.rotation-begin": _operation(
            "rotation.rotation_operations:BeginRotation", "pki rotate", "begin to replace a certificate or root"
        ),
        "certificates.rotations": _operation(
            "rotation.rotation_operations:ListRotations", "pki rotations", "list what expires soon, and the rotations"
        ),
        "certificates.rotation": _operation(
            "rotation.rotation_operations:Rotation", "pki rotation", "show a rotation's plan, or do its next step"
        ),
        "certificates.rotation-prepare": _operation("rotation.rotation_operations:PrepareRotation"),
        "certificates.rotation-adopt": _operation("rotation.rotation_operations:AdoptSuccessor"),
        "certificates.rotation-confirm": _operation("rotation.rotation_operations:ConfirmRotation"),
        "certificates.rotation-switch": _operation("rotation.rotation_operations:SwitchRotation"),
        "certificates.rotation-finish": _operation("rotation.rotation_operations:FinishRotation"),
        "certificates.rotation-cancel": _operation("rotation.rotation_operations:CancelRotation"),
    },
    command_groups={"pki": "certificates: own CAs, CSRs, trust between States, rotation and revocation"},
    upkeep=("labconsole_certificates.upkeep:upkeep",),
    doctor_checks=("labconsole_certificates.upkeep:checks",),
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
