//! A policy's memory of one subject and facet: at most 64 bytes, the same in memory and in the
//! frontier row.
//!
//! Every state begins alike: one byte that names policy and version, then the time of the last
//! visit (or of the first meeting), then a byte that says which of the two it is. Bytes of another
//! policy or version are read as of somebody who was never visited.

use kittiwake_model::WorldTime;

/// The most bytes that a policy may keep per subject and facet; with their number they are 64.
pub const STATE_BYTES_MAX: usize = 63;

/// Bytes of the common beginning.
pub(super) const HEADER_BYTES: usize = 10;

/// A policy's memory of one subject, as the frontier row keeps it. Empty before anything is known.
///
/// It is one line of the processor's cache: whoever looks at a million subjects waits for memory more
/// than for anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub struct State {
    bytes: [u8; STATE_BYTES_MAX],
    length: u8,
}

/// The bytes do not fit into a frontier row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a policy's state of {0} bytes is larger than the {STATE_BYTES_MAX} bytes of a frontier row"
)]
pub struct StateTooLarge(pub usize);

impl Default for State {
    fn default() -> Self {
        Self {
            bytes: [0; STATE_BYTES_MAX],
            length: 0,
        }
    }
}

impl State {
    #[expect(clippy::needless_pass_by_value, reason = "rows hand their bytes over")]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, StateTooLarge> {
        Self::try_from(bytes.as_slice())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    /// When the subject was last visited.
    pub fn visited(&self) -> Option<WorldTime> {
        let is_visited = self.bytes[HEADER_BYTES - 1] != 0;
        (usize::from(self.length) >= HEADER_BYTES && is_visited).then(|| self.stamp())
    }

    /// When the subject was last visited or, failing that, first met.
    pub fn since(&self) -> Option<WorldTime> {
        (usize::from(self.length) >= HEADER_BYTES).then(|| self.stamp())
    }

    /// The same, as if the last visit or meeting had been then: for a turn that brought nothing to learn
    /// from.
    #[must_use]
    pub fn at(mut self, stamp: WorldTime) -> Self {
        if usize::from(self.length) >= HEADER_BYTES {
            self.bytes[1..9].copy_from_slice(&stamp.micros().to_le_bytes());
        }
        self
    }

    fn stamp(&self) -> WorldTime {
        let mut stamp = [0; 8];
        stamp.copy_from_slice(&self.bytes[1..9]);
        WorldTime(i64::from_le_bytes(stamp))
    }

    /// Whether a policy wrote these bytes.
    pub(super) const fn is_of(&self, tag: u8) -> bool {
        self.length as usize >= HEADER_BYTES && self.bytes[0] == tag
    }

    /// What follows the common beginning, to be read in the order in which it was written.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(&self.bytes[HEADER_BYTES..])
    }

    /// Begins a new state.
    pub(super) fn begin(&mut self, tag: u8, stamp: WorldTime, is_visited: bool) -> Writer<'_> {
        self.bytes = [0; STATE_BYTES_MAX];
        self.bytes[0] = tag;
        self.bytes[1..9].copy_from_slice(&stamp.micros().to_le_bytes());
        self.bytes[9] = u8::from(is_visited);
        self.length = HEADER_BYTES as u8;
        Writer(self)
    }
}

impl TryFrom<&[u8]> for State {
    type Error = StateTooLarge;

    fn try_from(bytes: &[u8]) -> Result<Self, StateTooLarge> {
        let mut state = Self::default();
        state
            .bytes
            .get_mut(..bytes.len())
            .ok_or(StateTooLarge(bytes.len()))?
            .copy_from_slice(bytes);
        state.length = bytes.len() as u8;
        Ok(state)
    }
}

/// Reads fields one after the other. What is not there reads as zero.
#[derive(Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.0 = rest;
                *taken
            }
            None => [0; N],
        }
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(super) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// A number; what is no number reads as zero, so that broken bytes cannot spread.
    pub(super) fn f32(&mut self) -> f32 {
        let value = f32::from_le_bytes(self.array());
        if value.is_finite() { value } else { 0.0 }
    }
}

/// Writes fields one after the other. A policy's layout is fixed, so that it fits or fails the
/// first test that is run.
#[derive(Debug)]
pub(super) struct Writer<'a>(&'a mut State);

impl Writer<'_> {
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let start = usize::from(self.0.length);
        let end = start + bytes.len();
        self.0.bytes[start..end].copy_from_slice(bytes);
        self.0.length = end as u8;
        self
    }

    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn f32(&mut self, value: f32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_the_same_after_a_row_has_kept_it() {
        let mut state = State::default();
        state
            .begin(7, WorldTime(-5), true)
            .f32(1.5)
            .u16(9)
            .i64(-3)
            .u8(1);
        let kept = State::from_bytes(state.clone().into_bytes()).unwrap();
        assert_eq!(kept, state);
        assert_eq!(kept.visited(), Some(WorldTime(-5)));
        let mut fields = kept.fields();
        assert!((fields.f32() - 1.5).abs() < f32::EPSILON);
        assert_eq!((fields.u16(), fields.i64(), fields.u8()), (9, -3, 1));
    }

    #[test]
    fn broken_bytes_are_nobody_visited() {
        for bytes in [vec![], vec![1], vec![0xff; 9]] {
            let state = State::from_bytes(bytes).unwrap();
            assert_eq!((state.visited(), state.is_of(0xff)), (None, false));
        }
        assert!(State::from_bytes(vec![0; 64]).is_err());
        let state = State::from_bytes(vec![0xff; 63]).unwrap();
        assert_eq!(size_of::<State>(), 64);
        assert_eq!(state.fields().f32().to_bits(), 0);
    }
}
