//! Ids that a spreadsheet has damaged.
//!
//! Spreadsheets take long ids for numbers, keep 15 digits and write the others as 0, or write
//! `1.09E+17`. Such an id belongs to somebody else or to nobody.

/// The digits that a spreadsheet keeps.
const DIGITS_KEPT: usize = 15;
/// The most digits of an id, and the most letters of one that was rewritten; what is longer is
/// something else.
const DIGITS_MAX: usize = 25;
const REWRITTEN_MAX: usize = 40;
/// Ids that are shown as examples.
const EXAMPLES_MAX: usize = 3;

/// Ids of one kind, counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Census {
    /// Ids that begin with a digit.
    pub numeric: u64,
    /// Ids written as `1.09E+17` or `109000000000000000.0`.
    pub rewritten: u64,
    /// Ids whose digits after the 15th are all 0.
    pub rounded: u64,
    /// How many of those there would be by chance.
    pub rounded_expected: f64,
    pub examples: Vec<String>,
}

impl Census {
    pub(crate) fn count(&mut self, id: &str) {
        if !id.starts_with(|letter: char| letter.is_ascii_digit()) {
            return;
        }
        self.numeric += 1;
        if is_rewritten(id) {
            self.rewritten += 1;
            // Certain, so shown before those that may be chance.
            self.examples.insert(0, id.to_owned());
            self.examples.truncate(EXAMPLES_MAX);
            return;
        }
        let all_digits = id.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits || !(DIGITS_KEPT + 1..=DIGITS_MAX).contains(&id.len()) {
            return;
        }
        let beyond = &id[DIGITS_KEPT..];
        self.rounded_expected += 0.1_f64.powi(beyond.len() as i32);
        if beyond.bytes().all(|byte| byte == b'0') {
            self.rounded += 1;
            if self.examples.len() < EXAMPLES_MAX {
                self.examples.push(id.to_owned());
            }
        }
    }

    /// Whether there are more zeros than chance gives: by six standard deviations and two ids,
    /// so that a sound list of any length is not suspected.
    fn is_rounded(&self) -> bool {
        let expected = self.rounded_expected;
        self.rounded as f64 > expected + 6.0 * expected.sqrt() + 2.0
    }

    /// What looks damaged, in words; `None` if nothing does.
    pub(crate) fn suspicion(&self) -> Option<String> {
        let mut signs = Vec::new();
        if self.rewritten > 0 {
            signs.push(format!("{} are written as numbers", self.rewritten));
        }
        if self.is_rounded() {
            signs.push(format!(
                "{} end in zeros after the 15th digit, where chance gives {:.0}",
                self.rounded, self.rounded_expected
            ));
        }
        if signs.is_empty() {
            return None;
        }
        Some(format!(
            "of {} ids {} (for example {})",
            self.numeric,
            signs.join(" and "),
            self.examples.join(", ")
        ))
    }
}

/// Whether an id is written as a spreadsheet or a data frame writes large numbers.
fn is_rewritten(id: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if id.len() > REWRITTEN_MAX {
        return false;
    }
    if let Some((number, exponent)) = id.split_once(['E', 'e']) {
        let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
        let exponent = exponent.strip_prefix('+').unwrap_or_default();
        return digits(whole) && digits(fraction) && digits(exponent) && exponent.len() <= 3;
    }
    id.split_once('.')
        .is_some_and(|(whole, fraction)| digits(whole) && whole.len() > 4 && fraction == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census<T: AsRef<str>>(ids: impl IntoIterator<Item = T>) -> Census {
        let mut census = Census::default();
        for id in ids {
            census.count(id.as_ref());
        }
        census
    }

    #[test]
    fn numbers_with_exponents_are_found_and_names_are_not() {
        for id in [
            "1.09E+17",
            "1,09E+17",
            "1e+17",
            "9.5e+018",
            "109348684362183000.0",
        ] {
            assert!(is_rewritten(id), "{id}");
        }
        for id in [
            "1e5", "2e", "3.14", "1.09E17", "1E+", "10.0", "7even", "1.2.0",
        ] {
            assert!(!is_rewritten(id), "{id}");
        }
        let found = census(["alice", "1.09E+17", "109348684362183217"]);
        assert_eq!((found.numeric, found.rewritten), (2, 1));
        assert!(found.suspicion().unwrap().contains("1.09E+17"));
    }

    #[test]
    fn ids_that_lost_their_last_digits_are_found() {
        let damaged = (0..20).map(|place| format!("1093486843{:05}000", place * 977));
        let said = census(damaged).suspicion().unwrap();
        assert!(said.contains("20 end in zeros"), "{said}");
    }

    #[test]
    fn a_few_damaged_seeds_are_found_among_few() {
        let ids = [
            "109348684362183000",
            "109348684362184000",
            "109348684362185000",
        ];
        assert!(census(ids).suspicion().is_some());
        assert_eq!(census(&ids[..2]).suspicion(), None);
    }

    #[test]
    fn sound_ids_of_any_length_are_not_suspected() {
        for digits in 1..=22_u32 {
            let mut state = 88_172_645_463_325_252_u128;
            let ids = (0..5_000).map(|_| {
                state = state.wrapping_mul(0x2545_F491_4F6C_DD1D_1234_5678_9ABC_DEF1) + 1;
                let low = 10_u128.pow(digits - 1);
                (low + (state >> 40) % (9 * low)).to_string()
            });
            assert_eq!(census(ids).suspicion(), None, "{digits} digits");
        }
    }

    #[test]
    fn counters_of_small_networks_are_not_suspected() {
        assert_eq!(
            census((1..3_000).map(|id| (id * 1_000).to_string())).suspicion(),
            None
        );
    }
}
