"""Authorities, trust and centres with one fault each, which a use case has to find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labconsole_v2x.pki.authorization_authority import AuthorizationAuthority, RemoteAuthority
from labconsole_v2x.pki.authorization_messages import ValidationRequest
from labconsole_v2x.pki.enrolment_authority import EnrolmentAuthority, RegisteredStation
from labconsole_v2x.pki.http_transport import CTL_TYPE
from labconsole_v2x.pki.lists.distribution_centre import DistributionCentre
from labconsole_v2x.pki.lists.station_trust import StationTrust
from labconsole_v2x.pki.request_parts import PublicKeys, SubjectAttributes
from labconsole_v2x.pki.root.authority_requests import AuthorityKind
from labconsole_v2x.pki.root.root_authority import AcceptedAuthority, RootAuthority
from labconsole_v2x.security.issuing import issue
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Certificate, Validity
from labconsole_v2x.use_cases.cases.bench_authorities import CaseRegister
from labconsole_v2x.use_cases.cases.pki_cases import EMERGENCY


class _GenerousRegister(CaseRegister):
    def credential(self, hashed_id8: bytes) -> tuple[RegisteredStation, Certificate] | None:
        found = super().credential(hashed_id8)
        return found and (replace(found[0], permissions=EMERGENCY), found[1])


class GenerousEa(EnrolmentAuthority):
    """Permits each station what emergency vehicles may do."""

    def __init__(self, identity: Any, register: CaseRegister, *others: Any, **settings: Any) -> None:
        super().__init__(identity, _GenerousRegister(register.stations, register.credentials), *others, **settings)


class ForgetfulEa(EnrolmentAuthority):
    """Does not know a replay."""

    def remember(self, *request: Any) -> None:
        pass


class TimelessEa(EnrolmentAuthority):
    """Does not check the time of requests."""

    def check_time(self, *request: Any) -> None:
        pass


class EaOfAnyKey(EnrolmentAuthority):
    """Signs credentials with a key that is not its own."""

    def certify(self, keys: PublicKeys, validity: Validity, attributes: SubjectAttributes, code: Any) -> Certificate:
        own, permissions = self.identity.certificate, attributes.permissions or ()
        return issue(SoftwareKey.generate(), keys.verification, validity, issuer=own, permissions=permissions)


class ForgetfulRca(RootAuthority):
    """Answers the same request again."""

    def remember(self, *request: Any) -> None:
        pass


class ObligingRca(RootAuthority):
    """Certifies keys that its operator has not accepted."""

    def _first(self, key: bytes, authority: AcceptedAuthority | None) -> AcceptedAuthority:
        return authority or AcceptedAuthority(key, AuthorityKind.EA, "EA")


class RcaWithoutRevocation(RootAuthority):
    """Certifies the next key of a revoked authority."""

    def _check_revocation(self, authority: AcceptedAuthority) -> None:
        pass


class EaThatDiesOfNoise(EnrolmentAuthority):
    """Refuses all once it has got something that it cannot decrypt."""

    _noise = 0

    def answer(self, octets: bytes) -> bytes:
        self._noise += 1
        return super().answer(octets if self._noise < 15 else b"")


class ForgetfulAa(AuthorizationAuthority):
    """Does not know a replay."""

    def remember(self, *request: Any) -> None:
        pass


class TimelessAa(AuthorizationAuthority):
    """Does not check the time of requests."""

    def check_time(self, *request: Any) -> None:
        pass


class AaWithoutEa(AuthorizationAuthority):
    """Issues tickets without asking the EA."""

    def _validated(self, authority: RemoteAuthority, forwarded: ValidationRequest) -> SubjectAttributes:
        return forwarded.shared.attributes


class AaOfLateTickets(AuthorizationAuthority):
    """Issues tickets that are valid from tomorrow on."""

    def certify(self, keys: PublicKeys, validity: Validity, attributes: SubjectAttributes, code: Any) -> Certificate:
        later = Validity(validity.start_s + 86_400, validity.end_s + 86_400)
        return super().certify(keys, later, attributes, code)


class TrustWithoutOrder(StationTrust):
    """Applies older trust lists, too."""

    def _check_order(self, *of_list: Any) -> None:
        pass


class TrustWithoutRevocation(StationTrust):
    """Accepts CRLs, and does nothing about them."""

    def _distrust(self, *of_list: Any) -> None:
        pass


class ObligingCentre(DistributionCentre):
    """Has a list for each path."""

    def answer_get(self, path: str) -> tuple[str, bytes]:
        return CTL_TYPE, b"\x03\x81"
