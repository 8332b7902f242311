//! How bytes become messages: frames with a length before them, and a buffer that no count inside a message
//! can trick into a large allocation. Nothing is ever allocated because a peer announced it.

use std::io;

use bytes::{Buf, Bytes, BytesMut, TryGetError};
use kafka_protocol::protocol::buf::ByteBuf;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Why no frame came.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The peer closed the connection between two frames.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer closed the connection within a frame.
    #[error("the peer closed the connection after {got} of {of} bytes")]
    Cut { got: usize, of: usize },
    /// A frame that can't be one of ours.
    #[error("the peer announced a frame of {announced} bytes, of at most {max}{}", TlsHint(*.announced))]
    Size { announced: i32, max: usize },
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct TlsHint(i32);

impl std::fmt::Display for TlsHint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // 0x15 is a TLS alert and 0x03 its major version: a TLS listener's answer to plain text.
        match self.0.to_be_bytes() {
            [0x15, 0x03, ..] => f.write_str(", which looks like TLS"),
            _ => Ok(()),
        }
    }
}

/// Reads one frame, allocating as its bytes arrive.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S, max: usize) -> Result<Bytes, FrameError> {
    let mut head = [0; 4];
    let got = fill(stream, &mut head).await?;
    if got < head.len() {
        return Err(if got == 0 { FrameError::Closed } else { FrameError::Cut { got, of: head.len() } });
    }
    let announced = i32::from_be_bytes(head);
    let of = usize::try_from(announced).ok().filter(|size| *size <= max);
    let of = of.ok_or(FrameError::Size { announced, max })?;
    let mut body = BytesMut::new();
    let mut rest = stream.take(of as u64);
    while body.len() < of {
        if rest.read_buf(&mut body).await? == 0 {
            return Err(FrameError::Cut { got: body.len(), of });
        }
    }
    Ok(body.freeze())
}

async fn fill<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while let Some(free) = buffer.get_mut(got..).filter(|free| !free.is_empty()) {
        match stream.read(free).await? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

/// Counts up to here cost next to nothing, and tag numbers, which look the same, stay below.
const HARMLESS: usize = 16 * 1024;

/// The body of a message of a flexible version (KIP-482), guarded.
///
/// The decoder reserves room for as many elements as a count announces before it reads the first one, so that
/// a few bytes could make it ask for 300 GiB, which ends the process. All counts of flexible versions are
/// variable-length integers, read byte by byte. This buffer follows them and ends the message at a count that
/// is higher than the bytes that are left, since every element takes at least one.
pub(super) struct Guarded {
    bytes: Bytes,
    number: u64,
    shift: u32,
}

impl Guarded {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes, number: 0, shift: 0 }
    }

    /// The bytes that were not read yet.
    pub(super) fn into_rest(self) -> Bytes {
        self.bytes
    }

    fn forget(&mut self) {
        (self.number, self.shift) = (0, 0);
    }
}

impl Buf for Guarded {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.forget();
        self.bytes.advance(count);
    }

    fn try_get_u8(&mut self) -> Result<u8, TryGetError> {
        let byte = self.bytes.try_get_u8()?;
        // Longer numbers than five groups of seven bits are the decoder's to refuse.
        self.number |= u64::from(byte & 0x7f) << self.shift.min(56);
        self.shift += 7;
        if byte & 0x80 == 0 {
            let limit = self.bytes.remaining() + HARMLESS;
            let count = usize::try_from(self.number).unwrap_or(usize::MAX);
            self.forget();
            if count > limit {
                return Err(TryGetError { requested: count, available: self.bytes.remaining() });
            }
        }
        Ok(byte)
    }
}

impl ByteBuf for Guarded {
    fn peek_bytes(&mut self, range: std::ops::Range<usize>) -> Bytes {
        self.bytes.peek_bytes(range)
    }

    fn get_bytes(&mut self, size: usize) -> Bytes {
        self.forget();
        self.bytes.get_bytes(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::{ApiVersionsResponse, DescribeClusterResponse};
    use kafka_protocol::protocol::Decodable;

    #[tokio::test]
    async fn frames_are_read_whole_or_refused() {
        let read = |bytes: &'static [u8]| async move { read(&mut &bytes[..], 8).await };
        assert_eq!(&read(&[0, 0, 0, 2, 7, 8, 9]).await.unwrap()[..], [7, 8]);
        assert!(read(&[0, 0, 0, 0]).await.unwrap().is_empty());
        assert!(matches!(read(&[]).await, Err(FrameError::Closed)));
        assert!(matches!(read(&[0, 0]).await, Err(FrameError::Cut { got: 2, of: 4 })));
        assert!(matches!(read(&[0, 0, 0, 8, 1]).await, Err(FrameError::Cut { got: 1, of: 8 })));
        assert!(matches!(read(&[0, 0, 0, 9]).await, Err(FrameError::Size { announced: 9, max: 8 })));
        assert!(matches!(read(&[0xff; 4]).await, Err(FrameError::Size { announced: -1, max: 8 })));
        let tls = read(&[0x15, 3, 3, 0]).await.unwrap_err().to_string();
        assert!(tls.contains("TLS"), "{tls}");
    }

    /// Without the guard this test ends in an abort: the decoder asks for room for four thousand million nodes.
    #[test]
    fn a_count_that_no_message_could_hold_ends_the_message_and_not_the_process() {
        let mut describe_cluster = vec![0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1];
        describe_cluster.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        let decoded = DescribeClusterResponse::decode(&mut Guarded::new(describe_cluster.into()), 1);
        assert!(decoded.unwrap_err().to_string().contains("4294967295"));

        // the first tagged field is longer than what is read of it, and so hides the count of what follows
        let api_versions =
            [0, 0, 1, 0, 0, 0, 0, 2, 0, 12, 1, 0, 9, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 5, 1, 0];
        let bytes = Bytes::copy_from_slice(&api_versions);
        assert!(ApiVersionsResponse::decode(&mut Guarded::new(bytes), 4).is_err());
    }
}
