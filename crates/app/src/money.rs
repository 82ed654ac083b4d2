//! Amounts of money as people type them.

use kittiwake_engine::SpendCap;
use kittiwake_model::MONEY_SCALE;

/// Digits behind the point that are counted.
const DIGITS: usize = 6;

/// Reads `20USD`, `0.50 EUR` and the like.
pub(crate) fn parse(text: &str) -> Result<SpendCap, String> {
    let advice = || format!("{text:?} is no amount of money; write for example 20USD or 0.50EUR");
    let trimmed = text.trim();
    let code_at = trimmed.len().checked_sub(3).ok_or_else(advice)?;
    let (number, code) = trimmed.split_at_checked(code_at).ok_or_else(advice)?;
    if !code.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err(advice());
    }
    let number = number.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) || part.len() > DIGITS {
        return Err(advice());
    }
    let whole: u64 = whole.parse().map_err(|_| advice())?;
    let part: u64 = format!("{part:0<DIGITS$}").parse().map_err(|_| advice())?;
    let units = whole
        .checked_mul(MONEY_SCALE)
        .and_then(|units| units.checked_add(part))
        .filter(|units| *units > 0)
        .ok_or_else(advice)?;
    Ok(SpendCap {
        currency: code.to_ascii_uppercase().into(),
        units,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_a_number_and_a_currency() {
        for (text, currency, units) in [
            ("20USD", "USD", 20_000_000),
            ("0.50 eur", "EUR", 500_000),
            ("1.000001USD", "USD", 1_000_001),
        ] {
            let cap = parse(text).unwrap();
            assert_eq!((&*cap.currency, cap.units), (currency, units), "{text}");
        }
        for wrong in [
            "",
            "20",
            "USD",
            "-1USD",
            "1,5USD",
            "0USD",
            "1.0000001USD",
            "20 $",
            "é20€",
            "99999999999999999999USD",
            "1.2.3USD",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
