"""Certificates of an authority of our own."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Signs for whatever name it is given; `file` is what others are to trust."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def made(cls, folder: Path) -> Authority:
        """A new one."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("an authority of this test")
        unsigned = _unsigned(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        made = cls(folder, key, unsigned.sign(key, hashes.SHA256()))
        made.file.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
        return made

    @property
    def file(self) -> Path:
        """The authority's own certificate."""
        return self.folder / "authority.pem"

    def server(self, name: str) -> ssl.SSLContext:
        """For a server of this host name or address, and no other."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name) if name[-1].isalpha() else x509.IPAddress(ip_address(name))]
        unsigned = _unsigned(_name("a server"), self.certificate.subject, key).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        certificate = unsigned.sign(self.key, hashes.SHA256())
        file = self.folder / f"{name.replace(':', '_')}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _name(words: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, words)])


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )
