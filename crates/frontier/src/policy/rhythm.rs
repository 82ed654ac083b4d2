//! The rhythm of days and weeks: how the time between two instants weighs, hour by hour.

use super::{DAY_US, HOUR_US};
use kittiwake_model::WorldTime;

pub(super) const HOURS: usize = 24;
pub(super) const WEEK_HOURS: usize = 168;

/// The hour of the day, UTC.
pub(super) const fn hour_of_day(at: WorldTime) -> usize {
    (at.micros().rem_euclid(DAY_US) / HOUR_US) as usize
}

/// The hour of the week; the week begins where the epoch does, on a Thursday.
pub(super) const fn hour_of_week(at: WorldTime) -> usize {
    (at.micros().rem_euclid(7 * DAY_US) / HOUR_US) as usize
}

/// The sum of what each hour of the day holds, over a span of time.
pub(super) fn sum_of_hours(hours: &[f32; HOURS], from: WorldTime, to: WorldTime) -> f64 {
    if to <= from {
        return 0.0;
    }
    let full_days = to.since_us(from) / DAY_US;
    let day: f64 = hours.iter().map(|hour| f64::from(*hour)).sum();
    let mut at_us = from
        .micros()
        .saturating_add(full_days.saturating_mul(DAY_US));
    let mut sum = day * full_days as f64;
    while at_us < to.micros() {
        let (share, end_us) = part_of_hour(at_us, to.micros());
        sum += f64::from(hours[hour_of_day(WorldTime(at_us))]) * share;
        at_us = end_us;
    }
    sum
}

/// How much of an hour lies before `end_us`, and where that part ends.
fn part_of_hour(at_us: i64, end_us: i64) -> (f64, i64) {
    let hour_end_us = at_us
        .div_euclid(HOUR_US)
        .saturating_add(1)
        .saturating_mul(HOUR_US);
    let part_end_us = hour_end_us.min(end_us);
    ((part_end_us - at_us) as f64 / HOUR_US as f64, part_end_us)
}

/// How the week differs from a day that is repeated seven times.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Week {
    /// By hour of the week, around 1.
    factors: [f32; WEEK_HOURS],
    /// What the first days of a week weigh together, for each number of days.
    days: [f32; 8],
}

impl Default for Week {
    fn default() -> Self {
        Self::new(&[1.0; WEEK_HOURS], &[1.0; HOURS])
    }
}

impl Week {
    /// From factors by hour of the week, with the population's own day (of mean 1).
    pub(super) fn new(factors: &[f32; WEEK_HOURS], day: &[f32; HOURS]) -> Self {
        let mut days = [0.0; 8];
        for index in 0..7 {
            let hours = &factors[index * HOURS..][..HOURS];
            let sum: f32 = hours.iter().zip(day).map(|(one, other)| one * other).sum();
            days[index + 1] = days[index] + sum / HOURS as f32;
        }
        Self {
            factors: *factors,
            days,
        }
    }

    /// What the time between two instants weighs for a day like `hours` (of mean 1), in days. Whole
    /// days between the first and the last weigh what they do for the population.
    pub(super) fn weight_days(&self, hours: &[f32; HOURS], from: WorldTime, to: WorldTime) -> f64 {
        if to <= from {
            return 0.0;
        }
        let (first, last) = (
            from.micros().div_euclid(DAY_US),
            to.micros().div_euclid(DAY_US),
        );
        if last - first <= 1 {
            return self.by_hour(hours, from.micros(), to.micros());
        }
        let morning_us = (first + 1).saturating_mul(DAY_US);
        let evening_us = last.saturating_mul(DAY_US);
        self.by_hour(hours, from.micros(), morning_us)
            + self.whole_days(first + 1, last)
            + self.by_hour(hours, evening_us, to.micros())
    }

    fn whole_days(&self, from_day: i64, to_day: i64) -> f64 {
        let until = |day: i64| {
            let weeks = day.div_euclid(7) as f64 * f64::from(self.days[7]);
            weeks + f64::from(self.days[day.rem_euclid(7) as usize])
        };
        until(to_day) - until(from_day)
    }

    /// Hour by hour; whole hours of a day are summed up side by side.
    fn by_hour(&self, hours: &[f32; HOURS], from_us: i64, to_us: i64) -> f64 {
        let (first, last) = (from_us.div_euclid(HOUR_US), to_us.div_euclid(HOUR_US));
        let hour_of = |hour: i64| hour.rem_euclid(WEEK_HOURS as i64) as usize;
        let begun = (from_us - first * HOUR_US) as f32 / HOUR_US as f32;
        let ended = (to_us - last * HOUR_US) as f32 / HOUR_US as f32;
        let mut sum = ended * self.weight_of(hours, hour_of(last))
            - begun * self.weight_of(hours, hour_of(first));
        let mut hour = first;
        while hour < last {
            let of_week = hour_of(hour);
            let of_day = of_week % HOURS;
            let count = (HOURS - of_day).min((last - hour) as usize);
            sum += product(&self.factors[of_week..][..count], &hours[of_day..][..count]);
            hour += count as i64;
        }
        f64::from(sum) / HOURS as f64
    }

    /// What a day of the week weighs for the population.
    pub(super) fn weight_of_day(&self, day: usize) -> f64 {
        f64::from(self.days[day + 1] - self.days[day])
    }

    /// What an hour of the week weighs for a day like `hours`.
    pub(super) fn weight_of(&self, hours: &[f32; HOURS], hour: usize) -> f32 {
        self.factors[hour % WEEK_HOURS] * hours[hour % HOURS]
    }
}

/// The sum of the products, in several sums at once: one alone would wait for itself at every step.
fn product(ones: &[f32], others: &[f32]) -> f32 {
    const SUMS: usize = 8;
    let mut sums = [0.0_f32; SUMS];
    let (ones, ones_rest) = ones.as_chunks::<SUMS>();
    let (others, others_rest) = others.as_chunks::<SUMS>();
    for (one, other) in ones.iter().zip(others) {
        for place in 0..SUMS {
            sums[place] += one[place] * other[place];
        }
    }
    let rest = ones_rest.iter().zip(others_rest);
    rest.map(|(one, other)| one * other).sum::<f32>() + sums.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> WorldTime {
        WorldTime(hours * HOUR_US)
    }

    #[test]
    fn a_span_is_the_sum_of_its_hours() {
        let hours: [f32; HOURS] = std::array::from_fn(|hour| hour as f32);
        let half_past = WorldTime(at(22).micros() + HOUR_US / 2);
        // Half of hour 22, hours 23, 0 and 1.
        assert!((sum_of_hours(&hours, half_past, at(26)) - (11.0 + 23.0 + 1.0)).abs() < 1e-9);
        assert!((sum_of_hours(&hours, at(0), at(48)) - 552.0).abs() < 1e-9);
        assert!(sum_of_hours(&hours, at(5), at(5)).abs() < 1e-9);
        assert!((sum_of_hours(&hours, at(-1), at(0)) - 23.0).abs() < 1e-9);
    }

    #[test]
    fn whole_days_weigh_what_their_hours_do() {
        let factors: [f32; WEEK_HOURS] = std::array::from_fn(|hour| 0.5 + (hour / 24) as f32 / 6.0);
        let day: [f32; HOURS] = std::array::from_fn(|hour| if hour < 12 { 0.5 } else { 1.5 });
        let week = Week::new(&factors, &day);
        for (from, to) in [(3, 9), (3, 30), (3, 60), (-200, 500), (30, 400), (24, 72)] {
            let hourly: f64 = (from..to)
                .map(|hour| {
                    let hour = hour_of_week(at(hour));
                    f64::from(factors[hour] * day[hour % HOURS]) / 24.0
                })
                .sum();
            let weight = week.weight_days(&day, at(from), at(to));
            assert!(
                (weight - hourly).abs() < 1e-4,
                "{from} {to} {weight} {hourly}"
            );
        }
    }
}
