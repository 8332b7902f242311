//! SCRAM users that a new cluster begins with (KIP-900): from the text that names one to the record that Kafka starts
//! on. No message and no `Debug` here ever holds a password, or what could be a piece of one.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use secrecy::{ExposeSecret as _, SecretString};

/// How many bytes of salt a user gets that is given none.
const SALT: usize = 26;
const FEWEST_ITERATIONS: u32 = 4096;
const MOST_ITERATIONS: u32 = 16384;

/// A SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

impl Mechanism {
    /// Its number in records.
    #[must_use]
    pub fn number(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|mechanism| mechanism.name() == name)
    }
}

/// What Kafka keeps of a user: enough to let it in, and not its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub user: String,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash that the client's proof is checked with.
    pub stored_key: Vec<u8>,
    /// The key that the server proves itself with.
    pub server_key: Vec<u8>,
    /// How often the password was hashed.
    pub iterations: i32,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.mechanism.name(), self.user)
    }
}

/// Why a text names no user. Says which part is wrong, never what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScram {
    /// There is no mechanism.
    #[error("{0}")]
    Form(&'static str),
    /// The mechanism is not one of the two.
    #[error("mechanism {0:?} is not one of SCRAM-SHA-256 and SCRAM-SHA-512")]
    Mechanism(String),
    /// Keys that mean nothing.
    #[error("unknown keys: {0}; known are name, password, salt, saltedpassword, iterations")]
    UnknownKeys(String),
    /// A part is missing.
    #[error("{0}")]
    Missing(&'static str),
    /// A part is not in the form that it needs.
    #[error("the value of '{key}' is {wanted}")]
    Value {
        /// The part.
        key: &'static str,
        /// What is wrong with it.
        wanted: String,
    },
    /// The password is empty.
    #[error("the 'password' is empty")]
    EmptyPassword,
}

/// The parts of an argument, and whether a password was among them before a part.
struct Parts<'a> {
    name: Option<&'a str>,
    password: Option<&'a str>,
    salt: Option<&'a str>,
    salted_password: Option<&'a str>,
    iterations: Option<&'a str>,
}

/// Reads `MECHANISM=[name=…,password=…]` as Kafka's tool does: split at every comma, nothing escaped.
///
/// # Errors
/// If the text is out of form.
pub fn parse(argument: &SecretString) -> Result<Credential, InvalidScram> {
    let text = argument.expose_secret().trim();
    let form = "it has the form SCRAM-SHA-256=[name=…,password=…]: there is no equals sign";
    let (mechanism, rest) = text.split_once('=').ok_or(InvalidScram::Form(form))?;
    let mechanism = Mechanism::of(mechanism)
        .ok_or_else(|| InvalidScram::Mechanism(mechanism.chars().take(32).collect()))?;
    let inner = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let parts = read(inner.ok_or(InvalidScram::Form("what follows the mechanism must stand in [ and ]"))?)?;
    credential(mechanism, &parts)
}

fn read(text: &str) -> Result<Parts<'_>, InvalidScram> {
    let mut parts = Parts { name: None, password: None, salt: None, salted_password: None, iterations: None };
    let mut unknown = Vec::new();
    let mut after_secret = false;
    for part in components(text) {
        let form = "a part between commas has no equals sign; a password can hold no comma";
        let (key, value) = part.split_once('=').ok_or(InvalidScram::Form(form))?;
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
        match key {
            "name" => parts.name = Some(value),
            "iterations" => parts.iterations = Some(value),
            "salt" => parts.salt = Some(value),
            "password" => (parts.password, after_secret) = (Some(value), true),
            "saltedpassword" => (parts.salted_password, after_secret) = (Some(value), true),
            // what follows a password may be the rest of one that holds a comma
            _ if after_secret => unknown.push("(one that follows the password)".to_owned()),
            other => unknown.push(format!("{:?}", other.chars().take(32).collect::<String>())),
        }
    }
    if parts.name.is_none() {
        return Err(InvalidScram::Missing("there must be a 'name'"));
    }
    if !unknown.is_empty() {
        unknown.sort();
        return Err(InvalidScram::UnknownKeys(unknown.join(", ")));
    }
    Ok(parts)
}

/// The parts between commas, without empty ones at the end, as Java splits.
fn components(text: &str) -> Vec<&str> {
    let mut components: Vec<&str> = text.split(',').collect();
    while components.len() > 1 && components.last().is_some_and(|last| last.is_empty()) {
        components.pop();
    }
    components
}

fn credential(mechanism: Mechanism, parts: &Parts<'_>) -> Result<Credential, InvalidScram> {
    let iterations = iterations(parts.iterations)?;
    let decode = |key: &'static str, text: &str| {
        STANDARD.decode(text).map_err(|_| InvalidScram::Value { key, wanted: "not base64".to_owned() })
    };
    let salt = match parts.salt {
        Some(salt) => decode("salt", salt)?,
        None => rand::random::<[u8; SALT]>().to_vec(),
    };
    let salted = match (parts.password, parts.salted_password) {
        (Some(""), _) => return Err(InvalidScram::EmptyPassword),
        (Some(password), _) => salted_password(mechanism, password, &salt, iterations),
        (None, Some(salted)) => {
            let salted = decode("saltedpassword", salted)?;
            if parts.salt.is_none() {
                return Err(InvalidScram::Missing("a 'saltedpassword' needs its 'salt'"));
            }
            salted
        }
        (None, None) => {
            return Err(InvalidScram::Missing("there must be one of 'password' and 'saltedpassword'"));
        }
    };
    let (mac, hash) = match mechanism {
        Mechanism::Sha256 => (hmac::HMAC_SHA256, &digest::SHA256),
        Mechanism::Sha512 => (hmac::HMAC_SHA512, &digest::SHA512),
    };
    let key = hmac::Key::new(mac, &salted);
    let client_key = hmac::sign(&key, b"Client Key");
    Ok(Credential {
        user: parts.name.unwrap_or_default().to_owned(),
        mechanism,
        salt,
        stored_key: digest::digest(hash, client_key.as_ref()).as_ref().to_vec(),
        server_key: hmac::sign(&key, b"Server Key").as_ref().to_vec(),
        iterations: i32::try_from(iterations.get()).unwrap_or(i32::MAX),
    })
}

fn iterations(text: Option<&str>) -> Result<NonZeroU32, InvalidScram> {
    let key = "iterations";
    let number = match text {
        None => i64::from(FEWEST_ITERATIONS),
        Some(text) => text
            .parse::<i32>()
            .map(i64::from)
            .map_err(|_| InvalidScram::Value { key, wanted: "no number".to_owned() })?,
    };
    let wanted = || InvalidScram::Value {
        key,
        wanted: format!("{number}, which is not from {FEWEST_ITERATIONS} to {MOST_ITERATIONS}"),
    };
    let number = u32::try_from(number).map_err(|_| wanted())?;
    let number = NonZeroU32::new(number).filter(|n| (FEWEST_ITERATIONS..=MOST_ITERATIONS).contains(&n.get()));
    number.ok_or_else(wanted)
}

fn salted_password(mechanism: Mechanism, password: &str, salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
    let (algorithm, length) = match mechanism {
        Mechanism::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, digest::SHA256_OUTPUT_LEN),
        Mechanism::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, digest::SHA512_OUTPUT_LEN),
    };
    let mut salted = vec![0; length];
    pbkdf2::derive(algorithm, iterations, salt, password.as_bytes(), &mut salted);
    salted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Credential, InvalidScram> {
        parse(&SecretString::from(text))
    }

    #[test]
    fn keys_are_those_that_kafka_was_seen_to_write() {
        let alice = read(
            r#" SCRAM-SHA-256=[name=alice,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3U3bTh0",iterations=8192,password=alice]"#,
        )
        .unwrap();
        let stored_key: [i8; 32] = [
            27, 49, -24, 9, 24, 106, 71, 38, 85, -110, -56, 111, 57, -100, -4, -27, 24, -34, 118, 44, -88,
            116, 97, 83, 64, -46, 108, -125, 119, 99, 2, 121,
        ];
        assert_eq!(alice.stored_key, stored_key.map(i8::cast_unsigned));
        assert_eq!((alice.server_key[0], alice.iterations), (180, 8192));
        let salted = read(r#"SCRAM-SHA-512=[name=alice,salt="N3E=",saltedpassword="YCE="]"#).unwrap();
        assert_eq!((salted.stored_key[0], salted.server_key[0], salted.iterations), (113, 76, 4096));
        assert_eq!(salted.salt, b"7q");
    }

    #[test]
    fn without_a_salt_each_user_gets_one_of_its_own() {
        let user = || read("SCRAM-SHA-512=[name=a,password=b]").unwrap();
        assert_ne!(user().salt, user().salt);
        assert_eq!(user().salt.len(), SALT);
    }

    #[test]
    fn a_password_wins_over_a_salted_one() {
        let both = read(r#"SCRAM-SHA-256=[name=a,salt="N3E=",saltedpassword="YCE=",password=b]"#).unwrap();
        let one = read(r#"SCRAM-SHA-256=[name=a,salt="N3E=",password=b]"#).unwrap();
        assert_eq!(both.stored_key, one.stored_key);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_told() {
        let wrong = [
            ("x", "no equals sign"),
            ("SCRAM-SHA-1=[name=a,password=hush]", "\"SCRAM-SHA-1\""),
            ("SCRAM-SHA-256=name=a,password=hush", "[ and ]"),
            ("SCRAM-SHA-256=[]", "no equals sign"),
            ("SCRAM-SHA-256=[password=hush]", "'name'"),
            ("SCRAM-SHA-256=[ name=a, password=hush]", "'name'"),
            ("SCRAM-SHA-256=[name=a]", "'password' and 'saltedpassword'"),
            ("SCRAM-SHA-256=[name=a,password=]", "'password' is empty"),
            ("SCRAM-SHA-256=[name=a,zz=1,yy=2,password=hush]", "\"yy\", \"zz\""),
            ("SCRAM-SHA-256=[name=a,password=first,hush=2]", "follows the password"),
            ("SCRAM-SHA-256=[name=a,password=first,hush]", "no comma"),
            ("SCRAM-SHA-256=[name=a,iterations=x,password=hush]", "'iterations' is no number"),
            ("SCRAM-SHA-256=[name=a,iterations=4095,password=hush]", "4095"),
            ("SCRAM-SHA-256=[name=a,iterations=16385,password=hush]", "16385"),
            ("SCRAM-SHA-256=[name=a,iterations=-1,password=hush]", "-1"),
            ("SCRAM-SHA-256=[name=a,salt=***,password=hush]", "'salt' is not base64"),
            ("SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword=hush!]", "'saltedpassword' is not base64"),
            ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "'salt'"),
        ];
        for (text, expected) in wrong {
            let error = read(text).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(told.contains(expected), "{text}: {told}");
            assert!(!told.contains("hush"), "{told}");
        }
        let user = read("SCRAM-SHA-256=[name=a,password=hush]").unwrap();
        assert_eq!(format!("{user:?}"), "SCRAM-SHA-256 a");
    }
}
