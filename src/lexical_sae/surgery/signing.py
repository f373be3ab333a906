"""Ed25519 signatures of certificates; keys are PEM files, for instance from
``openssl genpkey -algorithm ed25519``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ALGORITHM = "ed25519"
INSTALL = "Signatures need the package cryptography: pip install 'lexical-sae[surgery]'."


def signed(certificate: dict[str, Any], key_file: Path) -> dict[str, Any]:
    """The certificate with a signature over all of it."""
    key = private_key(key_file)
    content = {name: value for name, value in certificate.items() if name != "signature"}
    signature = {
        "algorithm": ALGORITHM,
        "public_key": key.public_key().public_bytes_raw().hex(),
        "value": key.sign(canonical(content)).hex(),
    }
    return {**content, "signature": signature}


def check_signature(certificate: dict[str, Any], public_key: Path | None = None) -> str | None:
    """Why the signature does not hold; None if it does. A public key given must be its own."""
    if "signature" not in certificate:
        return "it is not signed" if public_key is not None else None
    signature = certificate["signature"]
    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        return "its signature is damaged"
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise ImportError(INSTALL) from None
    try:
        stated = bytes.fromhex(str(signature.get("public_key")))
        value = bytes.fromhex(str(signature.get("value")))
        known = Ed25519PublicKey.from_public_bytes(stated)
    except ValueError:
        return "its signature is damaged"
    if public_key is not None and stated != _public_bytes(public_key):
        return f"it is signed by another key than {public_key}"
    content = {name: entry for name, entry in certificate.items() if name != "signature"}
    try:
        known.verify(value, canonical(content))
    except InvalidSignature:
        return "its signature does not fit what it says"
    return None


def signer(certificate: dict[str, Any], known: bool) -> str:
    """Who signed, for people; `known` if the key was given to be checked against."""
    signature = certificate.get("signature")
    if not isinstance(signature, dict):
        return "not signed"
    who = "as given" if known else "whose it is was not checked (--public-key)"
    return f"signed, and the signature holds; key {str(signature['public_key'])[:16]}…, {who}"


def canonical(content: dict[str, Any]) -> bytes:
    """The bytes that are signed: keys sorted, no spaces, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def private_key(file: Path) -> Any:
    """The key of a PEM file."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise ImportError(INSTALL) from None
    if not file.is_file():
        raise ValueError(f"{file} was not found; expected a PEM file with an ed25519 private key.")
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{file} holds no ed25519 private key without password, as PEM.")
    return key


def _public_bytes(file: Path) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if not file.is_file():
        raise ValueError(f"{file} was not found; expected a PEM file with an ed25519 public key.")
    try:
        key = load_pem_public_key(file.read_bytes())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{file} holds no ed25519 public key, as PEM.")
    return key.public_bytes_raw()
