//! The few forms that fields of records have on disk. What is read is never believed to be there before it is seen.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// They end too early.
    #[error("it ends in the middle of something")]
    CutOff,
    /// A number has more bytes than any.
    #[error("a number in it is too long")]
    LongNumber,
    /// A text is not UTF-8.
    #[error("a text in it is not UTF-8")]
    NotText,
}

/// Adds a text or bytes, after their length plus one.
pub(super) fn put_compact(out: &mut BytesMut, bytes: &[u8]) {
    put_unsigned(out, bytes.len() as u64 + 1);
    out.put_slice(bytes);
}

/// Adds a number in groups of seven bits, the lowest first.
pub(super) fn put_unsigned(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.put_u8(number.to_le_bytes()[0]);
}

/// Takes so many bytes.
pub(super) fn take(rest: &mut Bytes, length: u64) -> Result<Bytes, Malformed> {
    match usize::try_from(length) {
        Ok(length) if length <= rest.len() => Ok(rest.split_to(length)),
        _ => Err(Malformed::CutOff),
    }
}

/// Takes a number in groups of seven bits.
pub(super) fn take_unsigned(rest: &mut Bytes) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = rest.try_get_u8().map_err(|_| Malformed::CutOff)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed::LongNumber)
}

/// Takes a number in groups of seven bits, with the sign in the lowest one.
pub(super) fn take_signed(rest: &mut Bytes) -> Result<i64, Malformed> {
    let number = take_unsigned(rest)?;
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

/// Takes a text after its length plus one.
pub(super) fn take_text(rest: &mut Bytes) -> Result<String, Malformed> {
    let length = take_unsigned(rest)?.saturating_sub(1);
    String::from_utf8(take(rest, length)?.to_vec()).map_err(|_| Malformed::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for number in [0, 1, 127, 128, 300, 1 << 32, u64::MAX] {
            let mut out = BytesMut::new();
            put_unsigned(&mut out, number);
            assert_eq!(take_unsigned(&mut out.freeze()), Ok(number));
        }
        assert_eq!(take_signed(&mut Bytes::from_static(&[3])), Ok(-2));
        assert_eq!(take_unsigned(&mut Bytes::from_static(&[0x80; 10])), Err(Malformed::LongNumber));
        assert_eq!(take_unsigned(&mut Bytes::from_static(&[0x80])), Err(Malformed::CutOff));
    }

    #[test]
    fn no_length_is_believed() {
        let mut out = BytesMut::new();
        put_unsigned(&mut out, u64::MAX);
        assert_eq!(take_text(&mut out.freeze()), Err(Malformed::CutOff));
        assert_eq!(take_text(&mut Bytes::from_static(&[2, 0xff])), Err(Malformed::NotText));
    }
}
