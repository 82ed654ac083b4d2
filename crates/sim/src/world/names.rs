//! User names that decode, and display names that do not have to.

use super::dice::Dice;
use super::vocabulary::{ADJECTIVES, EMOJI, NOUNS};

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `quiet_puffin_3f`: the part after the last underscore is the user's number.
pub(crate) fn username(dice: &mut Dice, user: u64) -> String {
    let mut name = format!("{}_{}_", dice.pick(ADJECTIVES), dice.pick(NOUNS));
    let digits_count = (u64::BITS - user.leading_zeros()).div_ceil(5).max(1);
    for place in (0..digits_count).rev() {
        let digit = (user >> (place * 5)) & 31;
        name.push(char::from(DIGITS[digit as usize]));
    }
    name
}

/// The number in a user name, whether or not somebody has that name.
pub(crate) fn user_in(username: &str) -> Option<u64> {
    let (_, digits) = username.rsplit_once('_')?;
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    digits.bytes().try_fold(0, |number, letter| {
        let lower = letter.to_ascii_lowercase();
        let digit = DIGITS.iter().position(|&candidate| candidate == lower)?;
        Some((number << 5) | digit as u64)
    })
}

/// The words last, the decoration changes with the profile.
pub(crate) fn display_name(lasting: &mut Dice, changing: &mut Dice) -> String {
    if lasting.chance(60) {
        return String::new();
    }
    let mut name = format!(
        "{} {}",
        capitalised(lasting.pick(ADJECTIVES)),
        capitalised(lasting.pick(NOUNS))
    );
    if changing.chance(300) {
        name.push(' ');
        name.push_str(changing.pick(EMOJI));
    }
    name
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::dice::Purpose;
    use super::*;

    #[test]
    fn a_number_comes_back_from_the_name() {
        for user in [0, 1, 31, 32, 1_999, 99_999_999, (1 << 28) - 1] {
            let name = username(&mut Dice::new(1, Purpose::Username, user, 0), user);
            assert_eq!(user_in(&name), Some(user), "{name}");
        }
        assert_eq!(user_in("no-underscore"), None);
        assert_eq!(user_in("ends_with_"), None);
        assert_eq!(user_in("odd_l\u{1F426}"), None);
    }
}
