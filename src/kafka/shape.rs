//! Whether an answer can be taken apart without harm. The protocol library reserves memory for as many elements as an
//! array announces, so a peer could make it ask for terabytes with four bytes; here every announced length is held
//! against what the frame has left, before the library sees it.

/// The shape of a piece of an answer.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// So many bytes.
    Fixed(usize),
    /// A string with an unsigned varint length + 1, 0 for null.
    CompactText,
    /// Elements after an `int32` count, -1 for null.
    Array(Vec<Shape>),
    /// Elements after an unsigned varint count + 1, 0 for null.
    CompactArray(Vec<Shape>),
    /// Tagged fields (KIP-482); those named here are walked, others are skipped.
    Tags(Vec<(u32, Shape)>),
}

/// The tagged fields of a struct without any that we know.
pub(super) const NO_TAGS: Shape = Shape::Tags(Vec::new());

/// Walks a body by its shape.
pub(super) fn check(body: &[u8], shapes: &[Shape]) -> Result<(), String> {
    let mut walk = Walk { left: body };
    shapes.iter().try_for_each(|shape| walk.step(shape))
}

struct Walk<'a> {
    left: &'a [u8],
}

impl<'a> Walk<'a> {
    fn step(&mut self, shape: &Shape) -> Result<(), String> {
        match shape {
            Shape::Fixed(length) => self.take(*length).map(drop),
            Shape::CompactText => {
                let length = self.varint()?.saturating_sub(1);
                self.take(length as usize).map(drop)
            }
            Shape::Array(element) => {
                let count = i32::from_be_bytes(self.array()?);
                self.elements(usize::try_from(count).unwrap_or(0), element)
            }
            Shape::CompactArray(element) => {
                let count = self.varint()?.saturating_sub(1);
                self.elements(count as usize, element)
            }
            Shape::Tags(known) => self.tags(known),
        }
    }

    fn elements(&mut self, count: usize, element: &[Shape]) -> Result<(), String> {
        // every element takes a byte at least
        if count > self.left.len() {
            return Err(format!("{count} elements are announced, with {} bytes left", self.left.len()));
        }
        for _ in 0..count {
            element.iter().try_for_each(|shape| self.step(shape))?;
        }
        Ok(())
    }

    fn tags(&mut self, known: &[(u32, Shape)]) -> Result<(), String> {
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let length = self.varint()? as usize;
            let content = self.take(length)?;
            if let Some((_, shape)) = known.iter().find(|(known, _)| *known == tag) {
                Walk { left: content }.step(shape)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, left) = self
            .left
            .split_at_checked(length)
            .ok_or_else(|| format!("{length} bytes are announced, with {} left", self.left.len()))?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "too short".to_owned())
    }

    fn varint(&mut self) -> Result<u32, String> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint of more than five bytes".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_lengths_are_held_against_the_bytes_that_are_there() {
        let array = [Shape::Array(vec![Shape::Fixed(2)])];
        assert!(check(&[0, 0, 0, 2, 1, 1, 2, 2], &array).is_ok());
        assert!(check(&[0x7f, 0xff, 0xff, 0xff], &array).unwrap_err().contains("2147483647 elements"));
        assert!(check(&[0xff, 0xff, 0xff, 0xff], &array).is_ok(), "null");
        let compact = [Shape::CompactArray(vec![Shape::CompactText, NO_TAGS])];
        assert!(check(&[2, 3, b'a', b'b', 0], &compact).is_ok());
        assert!(check(&[0xff, 0xff, 0xff, 0xff, 0x0f], &compact).is_err());
        assert!(check(&[2, 9, b'a'], &compact).is_err());
        assert!(check(&[0x80, 0x80, 0x80, 0x80, 0x80, 1], &compact).unwrap_err().contains("varint"));
    }

    #[test]
    fn known_tagged_fields_are_walked_and_others_skipped() {
        let tags = [Shape::Tags(vec![(1, Shape::CompactArray(vec![Shape::Fixed(1)]))])];
        assert!(check(&[2, 0, 2, 9, 9, 1, 2, 2, 7], &tags).is_ok());
        assert!(check(&[1, 1, 2, 99, 7], &tags).is_err());
        assert!(check(&[1, 1, 99, 7], &tags).is_err());
    }
}
