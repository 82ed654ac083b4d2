//! The Hash model with a calendar: weekdays, weekends and holidays have profiles of their own.
//!
//! CUVIM: "for some special dates, such as the weekend, people behave differently from workday".
//! A holiday is expected to be like the nearest holiday that was observed, in its level, with the
//! shape of a weekend; before any was observed it is a weekend.

use super::hash::{LONGEST_SPAN_DAYS, SlotCounts};
use super::rhythm::HOURS;
use super::{DAY_US, HOUR_US, Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;
use std::collections::BTreeSet;

/// Days that are holidays, as days since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holidays(BTreeSet<i64>);

impl FromIterator<i64> for Holidays {
    fn from_iter<I: IntoIterator<Item = i64>>(days: I) -> Self {
        Self(days.into_iter().collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Weekday,
    Weekend,
    Holiday,
}

impl Holidays {
    fn kind_of(&self, day: i64) -> Kind {
        if self.0.contains(&day) {
            return Kind::Holiday;
        }
        // Day 0 was a Thursday.
        match (day + 3).rem_euclid(7) {
            5 | 6 => Kind::Weekend,
            _ => Kind::Weekday,
        }
    }
}

#[derive(Debug, Clone)]
pub struct HashCalendar {
    page: f64,
    weight: f64,
    holidays: Holidays,
}

impl HashCalendar {
    pub const fn new(page: f64, weight: f64, holidays: Holidays) -> Self {
        Self {
            page,
            weight,
            holidays,
        }
    }

    /// What is expected between two times.
    fn expected(&self, tables: &Tables, from: WorldTime, to: WorldTime) -> f64 {
        const DAYS_MAX: i64 = 400;
        let from_us = from
            .micros()
            .max(to.micros().saturating_sub(DAYS_MAX * DAY_US));
        let (mut at_us, mut sum) = (from_us, 0.0);
        while at_us < to.micros() {
            let kind = self.holidays.kind_of(at_us.div_euclid(DAY_US));
            let hour = (at_us.rem_euclid(DAY_US) / HOUR_US) as usize;
            let begun_us = at_us.rem_euclid(HOUR_US);
            let is_midnight = hour == 0 && begun_us == 0;
            if is_midnight && to.micros() - at_us >= DAY_US {
                sum += tables.day(kind);
                at_us += DAY_US;
                continue;
            }
            let end_us = (at_us - begun_us).saturating_add(HOUR_US).min(to.micros());
            sum += tables.slot(kind, hour) * (end_us - at_us) as f64 / HOUR_US as f64;
            at_us = end_us;
        }
        sum
    }
}

/// Two profiles and the level of the last holiday, a byte for each number.
#[derive(Debug, Clone, Copy)]
struct Tables {
    weekday: [u8; HOURS],
    weekend: [u8; HOURS],
    /// Posts of a holiday, 0 before one was seen.
    holiday: u8,
    begun: u16,
}

impl Tables {
    fn read(state: &State) -> Self {
        let is_ours = state.is_of(tag::HASH_CALENDAR);
        let mut fields = state.fields();
        let tables = Self {
            weekday: fields.array(),
            weekend: fields.array(),
            holiday: fields.u8(),
            begun: fields.u16(),
        };
        if is_ours {
            return tables;
        }
        Self {
            weekday: [0; HOURS],
            weekend: [0; HOURS],
            holiday: 0,
            begun: 0,
        }
    }

    fn write(&self, state: &mut State, at: WorldTime) {
        state
            .begin(tag::HASH_CALENDAR, at, true)
            .bytes(&self.weekday)
            .bytes(&self.weekend)
            .u8(self.holiday)
            .u16(self.begun);
    }

    fn slot(&self, kind: Kind, hour: usize) -> f64 {
        match kind {
            Kind::Weekday => unpacked(self.weekday[hour]),
            Kind::Weekend => unpacked(self.weekend[hour]),
            Kind::Holiday => {
                let weekend = self.day(Kind::Weekend);
                if self.holiday == 0 || weekend <= 0.0 {
                    return unpacked(self.weekend[hour]);
                }
                unpacked(self.weekend[hour]) * unpacked(self.holiday) / weekend
            }
        }
    }

    fn day(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Weekday => self.weekday.iter().map(|byte| unpacked(*byte)).sum(),
            Kind::Weekend => self.weekend.iter().map(|byte| unpacked(*byte)).sum(),
            Kind::Holiday if self.holiday == 0 => self.day(Kind::Weekend),
            Kind::Holiday => unpacked(self.holiday),
        }
    }

    fn take_in(&mut self, counts: &SlotCounts, holidays: &Holidays, weight: f64) {
        let learnt =
            |byte: u8, count: f64| packed((1.0 - weight) * unpacked(byte) + weight * count);
        let mut holiday_posts = 0.0;
        for (slot, count) in counts.ended_slots(self.begun) {
            let hour = slot.rem_euclid(HOURS as i64) as usize;
            let count = f64::from(count);
            match holidays.kind_of(slot.div_euclid(HOURS as i64)) {
                Kind::Weekday => self.weekday[hour] = learnt(self.weekday[hour], count),
                Kind::Weekend => self.weekend[hour] = learnt(self.weekend[hour], count),
                Kind::Holiday => {
                    holiday_posts += count;
                    if hour == HOURS - 1 {
                        // Never 0, which would say that none was seen.
                        self.holiday = packed(holiday_posts).max(1);
                        holiday_posts = 0.0;
                    }
                }
            }
        }
        self.begun = counts.running(self.begun);
    }
}

/// A byte for a number from 0 up to about a million: eighths of powers of two above 1/1024.
fn packed(value: f64) -> u8 {
    if value < 1.0 / 1024.0 {
        return 0;
    }
    ((value.log2() + 10.0) * 8.0).round().clamp(0.0, 254.0) as u8 + 1
}

fn unpacked(byte: u8) -> f64 {
    if byte == 0 {
        return 0.0;
    }
    (f64::from(byte - 1) / 8.0 - 10.0).exp2()
}

impl Policy for HashCalendar {
    fn name(&self) -> &'static str {
        "hash-calendar"
    }

    fn tag(&self) -> u8 {
        tag::HASH_CALENDAR
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let mut tables = Tables::read(state);
        let counts = SlotCounts::of(state.since().unwrap_or(visit.at), visit);
        tables.take_in(&counts, &self.holidays, self.weight);
        tables.write(state, visit.at);
    }

    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let since = state.since().unwrap_or(now);
        let expected = self.expected(&Tables::read(state), since, now);
        (expected / self.page).max(elapsed_days(state, now) / LONGEST_SPAN_DAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> WorldTime {
        WorldTime(hours * HOUR_US)
    }

    /// Two posts at noon of every weekday, none at weekends; day 20 is a holiday.
    fn learnt(policy: &HashCalendar, days: i64, holiday_posts: usize) -> State {
        let (mut shared, mut state) = (Shared::default(), State::default());
        for day in 0..days {
            let noon = at(day * 24 + 12);
            let posts = match policy.holidays.kind_of(day) {
                Kind::Weekday => vec![noon; 2],
                Kind::Weekend => vec![noon; 1],
                Kind::Holiday => vec![noon; holiday_posts],
            };
            policy.observe(
                &mut shared,
                &mut state,
                &Visit::complete(at(day * 24 + 24), &posts),
            );
        }
        state
    }

    fn expected(policy: &HashCalendar, state: &State, day: i64) -> f64 {
        policy.expected(&Tables::read(state), at(day * 24), at(day * 24 + 24))
    }

    #[test]
    fn weekdays_and_weekends_are_told_apart() {
        let policy = HashCalendar::new(100.0, 0.5, Holidays::default());
        let state = learnt(&policy, 60, 0);
        // Days 61 and 64 are a Tuesday and a Friday, 65 a Saturday.
        assert_eq!(policy.holidays.kind_of(61), Kind::Weekday);
        assert_eq!(policy.holidays.kind_of(65), Kind::Weekend);
        assert!((expected(&policy, &state, 61) - 2.0).abs() < 0.2);
        assert!((expected(&policy, &state, 65) - 1.0).abs() < 0.1);
    }

    #[test]
    fn a_holiday_is_like_the_last_one_else_like_a_weekend() {
        let policy = HashCalendar::new(100.0, 0.5, [20, 61].into_iter().collect());
        let before = learnt(&policy, 19, 9);
        assert!((expected(&policy, &before, 61) - 1.0).abs() < 0.15);
        let after = learnt(&policy, 60, 9);
        assert!((expected(&policy, &after, 61) - 9.0).abs() < 0.9);
    }

    #[test]
    fn a_byte_is_near_enough() {
        for value in [0.001, 0.1, 1.0, 37.0, 5_000.0] {
            assert!(
                (unpacked(packed(value)) / value - 1.0).abs() < 0.05,
                "{value}"
            );
        }
        assert_eq!(packed(0.0), 0);
        assert_eq!(packed(f64::INFINITY), 255);
    }
}
