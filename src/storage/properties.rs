//! Properties files as Java reads and writes them, since that is how Kafka reads its configuration: in Latin-1, with
//! escapes and continued lines. Knows nothing of what a key means.

use std::collections::BTreeMap;

/// Keys and values; of a key that is there several times the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Why a text is no properties file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: \\u is followed by {found:?}, and not by four hexadecimal digits")]
pub struct PropertiesError {
    line: usize,
    found: String,
}

impl Properties {
    /// Reads a file as Java's `Properties` reads a stream: each byte is a character.
    ///
    /// # Errors
    /// If `\u` is not followed by four hexadecimal digits. Nothing else can be wrong with such a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, PropertiesError> {
        Self::read(bytes.iter().map(|byte| char::from(*byte)))
    }

    /// Reads a text that is known to be one.
    ///
    /// # Errors
    /// As [`Properties::parse`].
    pub fn parse_text(text: &str) -> Result<Self, PropertiesError> {
        Self::read(text.chars())
    }

    fn read(characters: impl Iterator<Item = char>) -> Result<Self, PropertiesError> {
        let mut properties = BTreeMap::new();
        for (number, line) in logical_lines(characters) {
            let (key, value) = split(&line);
            let unescape = |text| unescape(text).map_err(|found| PropertiesError { line: number, found });
            properties.insert(unescape(key)?, unescape(value)?);
        }
        Ok(Self(properties))
    }

    /// A key's value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All keys with their values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\u{c}')
}

/// The lines that count, each with the number of the line that it begins on: without comments, blanks in front, and with
/// those that end in a backslash put together.
fn logical_lines(characters: impl Iterator<Item = char>) -> Vec<(usize, Vec<char>)> {
    let characters: Vec<char> = characters.collect();
    let naturals = natural_lines(&characters);
    // what follows the last line's end is no line
    let ends = naturals.len() - usize::from(naturals.len() > 1 && naturals.last().is_some_and(Vec::is_empty));
    let mut lines = Vec::new();
    let mut line: Vec<char> = Vec::new();
    let mut begun = 1;
    // the line that goes on where another one begins
    let mut continued = None;
    for (number, natural) in (1..).zip(&naturals) {
        let blanks = natural.iter().take_while(|c| is_blank(**c)).count();
        let rest = natural.get(blanks..).unwrap_or_default();
        if line.is_empty() {
            begun = number;
            if rest.first().is_none_or(|first| matches!(first, '#' | '!')) {
                continue;
            }
        }
        line.extend(rest);
        let backslashes = rest.iter().rev().take_while(|c| **c == '\\').count();
        if backslashes % 2 == 1 {
            continued = Some(number);
            line.pop();
        } else {
            continued = None;
            lines.push((begun, std::mem::take(&mut line)));
        }
    }
    // a line that ends with the file counts even if nothing but its backslash is there, unless two characters end it
    if !line.is_empty() || (continued == Some(ends) && !characters.ends_with(&['\r', '\n'])) {
        lines.push((begun.min(continued.unwrap_or(begun)), line));
    }
    lines
}

fn natural_lines(characters: &[char]) -> Vec<Vec<char>> {
    let mut lines = vec![Vec::new()];
    let mut characters = characters.iter().copied().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => lines.push(Vec::new()),
            other => {
                if let Some(line) = lines.last_mut() {
                    line.push(other);
                }
            }
        }
    }
    lines
}

/// Key and value: the key ends at the first `=`, `:` or blank that no backslash stands before.
fn split(line: &[char]) -> (&[char], &[char]) {
    let mut escaped = false;
    let end = line.iter().position(|c| {
        let ends = !escaped && (is_blank(*c) || matches!(c, '=' | ':'));
        escaped = *c == '\\' && !escaped;
        ends
    });
    let Some(end) = end else { return (line, &[]) };
    let (key, rest) = line.split_at(end);
    let after = |rest: &[char]| rest.iter().take_while(|c| is_blank(**c)).count();
    let rest = rest.get(after(rest)..).unwrap_or_default();
    let rest = match rest.split_first() {
        Some(('=' | ':', rest)) => rest.get(after(rest)..).unwrap_or_default(),
        _ => rest,
    };
    (key, rest)
}

/// The text without its escapes; if one is malformed, what follows its `\u`.
fn unescape(text: &[char]) -> Result<String, String> {
    // Java's characters are UTF-16, so that an escape can be half of one
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let character = match (first, rest.split_first()) {
            ('\\', Some(('u', after))) => {
                let digits: String = after.iter().take(4).collect();
                let whole = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| whole).ok_or(digits)?;
                units.push(unit);
                rest = after.get(4..).unwrap_or_default();
                continue;
            }
            ('\\', Some((escaped, after))) => {
                rest = after;
                match escaped {
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    'f' => '\u{c}',
                    other => *other,
                }
            }
            ('\\', None) => continue,
            (other, _) => *other,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

/// A value as Java writes it where the file is written in UTF-8.
#[must_use]
pub fn escape_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for (at, character) in value.chars().enumerate() {
        match character {
            ' ' if at == 0 => escaped += "\\ ",
            '\t' => escaped += "\\t",
            '\n' => escaped += "\\n",
            '\r' => escaped += "\\r",
            '\u{c}' => escaped += "\\f",
            '\\' | '=' | ':' | '#' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let properties = Properties::parse(text.as_bytes()).unwrap();
        properties.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn lines_are_read_as_java_reads_them() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("a=1\nb:2\r\nc 3\rd\n", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "")]),
            ("  a \t= \t1 \n", &[("a", "1 ")]),
            ("a==1\nb=:2\nc : = 3", &[("a", "=1"), ("b", ":2"), ("c", "= 3")]),
            ("# x=1\n ! y=1\n#\\\na=1", &[("a", "1")]),
            ("a=1,\\\n   2,\\\r\n\t3", &[("a", "1,2,3")]),
            ("a=1\\\\\nb=2", &[("a", "1\\"), ("b", "2")]),
            ("a=1\\", &[("a", "1")]),
            ("a=1\\\n# no comment", &[("a", "1# no comment")]),
            ("\\\n# a comment\na=1", &[("a", "1")]),
            ("a\\ b\\=c=1", &[("a b=c", "1")]),
            ("a=\\t\\n\\q\\u00e9\\uD83D\\uDE00", &[("a", "\t\nq\u{e9}\u{1f600}")]),
            ("=1\n", &[("", "1")]),
            ("\\", &[("", "")]),
            ("\\\n", &[("", "")]),
            ("\\\n\n", &[]),
            ("\\\r\n", &[]),
            ("\\\n ", &[]),
            ("a\\\n ", &[("a", "")]),
            ("a=1\na=2", &[("a", "2")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<(String, String)> =
                expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            assert_eq!(read(text), expected, "{text:?}");
        }
        assert_eq!(Properties::parse(b"a=\xfc").unwrap().get("a"), Some("\u{fc}"));
    }

    #[test]
    fn a_malformed_escape_is_told_with_its_line() {
        for (text, line, found) in [("a=1\nb=\\u12g4", 2, "12g4"), ("#\n\\u1", 2, "1"), ("a=\\\n\\u", 1, "")]
        {
            let error = Properties::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, PropertiesError { line, found: found.to_owned() }, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_value_is_read_as_it_was_written(value in "\\PC*|[ \t\n\r\u{c}=:#!\\\\a]*") {
            let text = format!("key={}", escape_value(&value));
            let properties = Properties::parse_text(&text).unwrap();
            prop_assert_eq!(properties.get("key"), Some(value.as_str()));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Properties::parse(&bytes);
        }
    }
}
