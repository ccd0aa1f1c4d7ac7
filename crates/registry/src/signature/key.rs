//! Keys: public keys in PEM, private keys in PEM or encrypted by cosign.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use poly1305::{Poly1305, universal_hash::KeyInit as _};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, KeyPair, UnparsedPublicKey},
};
use salsa20::{
    XSalsa20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use serde::Deserialize;

use super::pem;
use crate::Digest;

/// The bytes before the point in the DER form of every public key of the curve P-256.
/// Source: RFC 5480, sections 2 and 2.1.1.
const SPKI_P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The size of an uncompressed point, in bytes.
const POINT: usize = 65;
/// The size of a key of `nacl/secretbox`, in bytes.
const BOX_KEY: usize = 32;
/// The size of its nonce, in bytes.
const BOX_NONCE: usize = 24;
/// The size of its authenticator, which comes first, in bytes.
const BOX_TAG: usize = 16;
/// The maximum memory for deriving a key, in bytes; cosign's own parameters need 64 MiB.
const MOST_SCRYPT: u64 = 256 << 20;

/// The reason why a text is not a supported key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It contains no PEM block.
    #[error("there is no PEM block in it")]
    NotPem,
    /// It is a key of another kind.
    #[error("it is `{found}`, expected {expected}")]
    OtherKind {
        /// The label or the algorithm.
        found: String,
        /// The supported kinds.
        expected: &'static str,
    },
    /// It violates its format.
    #[error("its {0} is not valid")]
    Malformed(&'static str),
    /// It needs another password.
    #[error("the password is wrong")]
    Password,
    /// The private key could not sign.
    #[error("the key cannot sign")]
    Signing,
}

/// A public key of the curve P-256.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: [u8; POINT],
}

impl PublicKey {
    /// Parses a key in PEM, as in `cosign.pub` and as printed by `openssl ec -pubout`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let (label, der) = pem::read(text).ok_or(KeyError::NotPem)?;
        let expected = "an ECDSA key of the curve P-256 as `PUBLIC KEY`";
        if label != "PUBLIC KEY" {
            let found = label.to_owned();
            return Err(KeyError::OtherKind { found, expected });
        }
        let point = der
            .strip_prefix(&SPKI_P256)
            .and_then(|point| <[u8; POINT]>::try_from(point).ok());
        let point = point
            .filter(|point| point[0] == 4)
            .ok_or_else(|| KeyError::OtherKind {
                found: "a public key of another algorithm".to_owned(),
                expected,
            })?;
        Ok(Self { point })
    }

    /// Returns the DER form (`SubjectPublicKeyInfo`).
    pub fn der(&self) -> Vec<u8> {
        [&SPKI_P256[..], &self.point].concat()
    }

    /// Returns the PEM form.
    pub fn pem(&self) -> String {
        let body = STANDARD.encode(self.der());
        let (first, second) = body.split_at(64);
        format!("-----BEGIN PUBLIC KEY-----\n{first}\n{second}\n-----END PUBLIC KEY-----\n")
    }

    /// Returns the name of the key in bundles: the SHA-256 digest of its DER form, in base64.
    pub fn hint(&self) -> String {
        use sha2::Digest as _;
        STANDARD.encode(sha2::Sha256::digest(self.der()))
    }

    /// Returns the name of the key in messages: the digest of its DER form.
    pub fn fingerprint(&self) -> String {
        Digest::of(&self.der()).to_string()
    }

    /// True if a signature in DER form is by this key and for these bytes.
    pub(crate) fn holds(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, self.point);
        key.verify(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// A private key of the curve P-256.
pub struct PrivateKey(EcdsaKeyPair);

impl PrivateKey {
    /// True if a text is an encrypted key, which needs a password.
    pub fn is_encrypted(text: &str) -> bool {
        pem::read(text).is_some_and(|(label, _)| label.starts_with("ENCRYPTED "))
    }

    /// Parses a key in PEM: the output of `cosign generate-key-pair`, or PKCS #8. `password` is for the former, and may be
    /// empty.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(text: &str, password: &[u8]) -> Result<Self, KeyError> {
        let (label, content) = pem::read(text).ok_or(KeyError::NotPem)?;
        let pkcs8 = match label {
            "PRIVATE KEY" => content,
            "ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY" => {
                open(&content, password)?
            }
            other => {
                return Err(KeyError::OtherKind {
                    found: other.to_owned(),
                    expected: "a key of `cosign generate-key-pair`, or PKCS #8 as `PRIVATE KEY` \
                        (`openssl pkcs8 -topk8 -nocrypt` writes it)",
                });
            }
        };
        let algorithm = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &pkcs8, &SystemRandom::new());
        let pair = pair.map_err(|_| KeyError::OtherKind {
            found: "a private key of another algorithm".to_owned(),
            expected: "an ECDSA key of the curve P-256, with its public key",
        })?;
        Ok(Self(pair))
    }

    /// Generates a key, in PKCS #8 as PEM.
    ///
    /// # Errors
    /// [`KeyError::Signing`] if the machine has no source of randomness.
    pub fn generate() -> Result<String, KeyError> {
        let algorithm = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let made = made.map_err(|_| KeyError::Signing)?;
        let body = STANDARD.encode(made.as_ref());
        let mut lines = String::new();
        for (at, character) in body.chars().enumerate() {
            if at > 0 && at % 64 == 0 {
                lines.push('\n');
            }
            lines.push(character);
        }
        Ok(format!(
            "-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"
        ))
    }

    /// Returns the public key.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if it is not a point, which is impossible for a checked key.
    pub fn public(&self) -> Result<PublicKey, KeyError> {
        let point = self.0.public_key().as_ref().try_into();
        point
            .map(|point| PublicKey { point })
            .map_err(|_| KeyError::Malformed("public key"))
    }

    /// Signs bytes; returns the signature in DER form.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        signature
            .map(|signature| signature.as_ref().to_vec())
            .map_err(|_| KeyError::Signing)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// A private key as cosign encrypts it. Source: go-securesystemslib, package `encrypted`.
#[derive(Deserialize)]
struct Encrypted {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize)]
struct Kdf {
    name: String,
    params: Params,
    salt: String,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
struct Cipher {
    name: String,
    nonce: String,
}

/// Decrypts a private key.
fn open(content: &[u8], password: &[u8]) -> Result<Vec<u8>, KeyError> {
    let Encrypted {
        kdf,
        cipher,
        ciphertext,
    } = serde_json::from_slice(content).map_err(|_| KeyError::Malformed("encryption"))?;
    for (found, expected) in [(&kdf.name, "scrypt"), (&cipher.name, "nacl/secretbox")] {
        if found != expected {
            return Err(KeyError::OtherKind {
                found: found.chars().take(40).collect(),
                expected,
            });
        }
    }
    let decode = |text: &str, what| STANDARD.decode(text).map_err(|_| KeyError::Malformed(what));
    let salt = decode(&kdf.salt, "salt")?;
    let nonce: [u8; BOX_NONCE] = decode(&cipher.nonce, "nonce")?
        .try_into()
        .map_err(|_| KeyError::Malformed("nonce"))?;
    let boxed = decode(&ciphertext, "ciphertext")?;
    let key = derive(password, &salt, &kdf.params)?;
    open_box(&key, &nonce, &boxed).ok_or(KeyError::Password)
}

fn derive(password: &[u8], salt: &[u8], params: &Params) -> Result<[u8; BOX_KEY], KeyError> {
    let Params { n, r, p } = *params;
    let wrong = || KeyError::Malformed("scrypt parameters");
    // Source: RFC 7914, section 2: 128 * N * r bytes, p times the work.
    let memory = n.checked_mul(128 * u64::from(r)).ok_or_else(wrong)?;
    if !n.is_power_of_two() || n < 2 || memory > MOST_SCRYPT || p > 4 {
        return Err(wrong());
    }
    let log_n = u8::try_from(n.trailing_zeros()).map_err(|_| wrong())?;
    let params = scrypt::Params::new(log_n, r, p).map_err(|_| wrong())?;
    let mut key = [0; BOX_KEY];
    scrypt::scrypt(password, salt, &params, &mut key).map_err(|_| wrong())?;
    Ok(key)
}

/// Decrypts a box; `None` if the key or the content is not the original one.
///
/// The first 32 bytes of the key stream are the key of the authenticator, which precedes the content.
/// Source: Bernstein, "Cryptography in `NaCl`", section 10.
fn open_box(key: &[u8; BOX_KEY], nonce: &[u8; BOX_NONCE], boxed: &[u8]) -> Option<Vec<u8>> {
    let (tag, content) = boxed.split_at_checked(BOX_TAG)?;
    let mut cipher = XSalsa20::new(&(*key).into(), &(*nonce).into());
    let mut authenticator = [0; 32];
    cipher.apply_keystream(&mut authenticator);
    let computed = Poly1305::new(&authenticator.into()).compute_unpadded(content);
    // `Tag` compares in constant time.
    if computed != poly1305::Tag::try_from(tag).ok()? {
        return None;
    }
    let mut opened = content.to_vec();
    cipher.apply_keystream(&mut opened);
    Some(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("fixtures/cosign.key");
    const PUBLIC: &str = include_str!("fixtures/cosign.pub");

    #[test]
    fn a_key_of_cosign_opens_with_its_password_and_with_no_other() {
        assert!(PrivateKey::is_encrypted(KEY));
        let key = PrivateKey::from_pem(KEY, b"correct-horse").unwrap();
        let public = PublicKey::from_pem(PUBLIC).unwrap();
        assert_eq!(key.public().unwrap(), public);
        assert_eq!(public.pem(), PUBLIC);
        let signature = key.sign(b"message").unwrap();
        assert!(public.holds(b"message", &signature));
        assert!(!public.holds(b"massage", &signature));
        assert_eq!(
            PrivateKey::from_pem(KEY, b"battery-staple").unwrap_err(),
            KeyError::Password
        );
    }

    #[test]
    fn a_key_of_pkcs8_needs_no_password() {
        let text = PrivateKey::generate().unwrap();
        assert!(!PrivateKey::is_encrypted(&text));
        let key = PrivateKey::from_pem(&text, b"").unwrap();
        let public = PublicKey::from_pem(&key.public().unwrap().pem()).unwrap();
        assert!(public.holds(b"x", &key.sign(b"x").unwrap()));
    }

    #[test]
    fn other_keys_are_refused_with_what_would_do() {
        let block = |label: &str, content: &[u8]| {
            format!(
                "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
                STANDARD.encode(content)
            )
        };
        let cases = [
            (PublicKey::from_pem("").unwrap_err(), "no PEM block"),
            (
                PublicKey::from_pem(KEY).unwrap_err(),
                "expected an ECDSA key",
            ),
            (
                PublicKey::from_pem(&block("PUBLIC KEY", b"x")).unwrap_err(),
                "another algorithm",
            ),
            (
                PrivateKey::from_pem(PUBLIC, b"").unwrap_err(),
                "openssl pkcs8",
            ),
            (
                PrivateKey::from_pem(&block("EC PRIVATE KEY", b"x"), b"").unwrap_err(),
                "openssl pkcs8",
            ),
            (
                PrivateKey::from_pem(&block("PRIVATE KEY", b"x"), b"").unwrap_err(),
                "P-256",
            ),
        ];
        for (error, why) in cases {
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn parameters_that_would_take_all_memory_are_refused() {
        for (n, r, p) in [
            (1 << 40, 8, 1),
            (1 << 20, 8, 1),
            (3, 8, 1),
            (0, 8, 1),
            (2, u32::MAX, 1),
            (2, 8, 100),
        ] {
            let params = Params { n, r, p };
            assert!(derive(b"", b"", &params).is_err(), "{n} {r} {p}");
        }
    }
}
