"""Thousands of certificates within seconds: P-256 keys in succession, each self-signed.

The keys are worthless: the private key of number n is BASE + n, and all signatures have one nonce. So a key costs one
addition of points, a signature one multiplication, and OpenSSL is not needed.
"""

import base64, hashlib

P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)
BASE, NONCE = 0x1234567890ABCDEF1234567890ABCDEF, 0xFEDCBA0987654321FEDCBA0987654321


def add(a, b):
    """The sum of two points of the curve, neither of them at infinity, nor their sum."""
    slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(k):
    out, doubled = None, G
    while k:
        if k & 1:
            out = add(out, doubled) if out else doubled
        doubled, k = add(doubled, doubled), k >> 1
    return out


def der(tag, *parts):
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 128 | len(length)]) + length + body


def integer(value):
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def sequence(*parts):
    return der(0x30, *parts)


def oid(text):
    first, second, *rest = map(int, text.split("."))
    out = bytes([first * 40 + second])
    for number in rest:
        piece = [number & 127]
        while number := number >> 7:
            piece.append(128 | number & 127)
        out += bytes(reversed(piece))
    return der(6, out)


EC_KEY = sequence(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7"))
ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"))
VALID = sequence(der(0x17, b"240101000000Z"), der(0x18, b"20991231235959Z"))


def pem(kind, body):
    text = base64.encodebytes(body).decode()
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n"


def certificate(name, serial, key, public, r, inverse):
    subject = sequence(der(0x31, sequence(oid("2.5.4.3"), der(12, name.encode()))))
    point = der(3, b"\0\4" + public[0].to_bytes(32, "big") + public[1].to_bytes(32, "big"))
    names = der(4, sequence(der(0x82, name.encode())))
    signed = sequence(der(0xA0, integer(2)), integer(serial), ECDSA_SHA256, subject, VALID, subject,
                      sequence(EC_KEY, point), der(0xA3, sequence(sequence(oid("2.5.29.17"), names))))
    digest = int.from_bytes(hashlib.sha256(signed).digest(), "big")
    signature = sequence(integer(r), integer(inverse * (digest + r * key) % N))
    return pem("CERTIFICATE", sequence(signed, ECDSA_SHA256, der(3, b"\0" + signature)))


def private_key(key, public):
    point = der(3, b"\0\4" + public[0].to_bytes(32, "big") + public[1].to_bytes(32, "big"))
    inner = sequence(integer(1), der(4, key.to_bytes(32, "big")), der(0xA1, point))
    return pem("PRIVATE KEY", sequence(integer(0), EC_KEY, der(4, inner)))


def make(names, offset=0):
    """Certificate and private key in PEM for each name; another offset gives other keys."""
    r, inverse = multiply(NONCE)[0] % N, pow(NONCE, -1, N)
    key = BASE + offset
    public = multiply(key)
    for number, name in enumerate(names):
        yield certificate(name, offset + number + 1, key, public, r, inverse), private_key(key, public)
        key, public = key + 1, add(public, G)
