//! What `adaptive` remembers of one subject: 63 bytes.

use crate::policy::rhythm::HOURS;
use crate::policy::{Shared, State, Visit, days_between, tag};
use kittiwake_model::WorldTime;

pub(super) const BURSTS: usize = 3;

/// What a post counts for at its hour.
const UNIT: u8 = 2;
/// How likely a post is to be the first of another habit, at whatever hour.
const CHANGE: f32 = 0.025;
/// No hour is so quiet that one post there proves another habit.
const HERE_MIN: f32 = 0.01;
/// Odds below which nothing fades, since counts are whole numbers and a little of each would be lost in rounding.
const ODDS_MIN: f32 = 0.05;

/// What is left of bursts after a time: they are felt for a day, six hours and an hour. The shorter ones
/// are the longest to the power of 4 and of 24.
pub(super) fn bursts_left(days: f64) -> [f64; BURSTS] {
    let of_day = (-days).exp();
    let power_4 = of_day.powi(4);
    let power_8 = power_4 * power_4;
    [of_day, power_4, power_8 * power_8 * power_8]
}

/// How much of the spread of posts the newest one decides.
const SPREAD_NEWEST: f64 = 1.0 / 16.0;
/// Steps of the byte that keeps the logarithm of the spread.
const SPREAD_STEPS: f64 = 10.0;

/// What a visit saw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Since the last visit.
    pub(super) elapsed_days: f64,
    /// The time that the answer covers, and what it weighs along the subject's days.
    pub(super) days: f64,
    pub(super) weight_days: f64,
}

/// Posts seen and days watched, both fading with time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fading {
    pub(super) posts: f32,
    pub(super) days: f32,
}

impl Fading {
    /// A rate as if it had been watched for some days.
    pub(super) fn of(days: f64, rate: f64) -> Self {
        Self {
            posts: (days * rate) as f32,
            days: days as f32,
        }
    }

    pub(super) fn rate(self, prior_days: f64, prior: f64) -> f64 {
        (f64::from(self.posts) + prior_days * prior) / (f64::from(self.days) + prior_days)
    }

    /// Takes in a visit, with a memory of so many days. Posts fade by their age, and the time in
    /// which they were made by as much in the mean.
    pub(super) fn take_in(&mut self, memory_days: f64, seen: &Seen, visit: &Visit<'_>) {
        let kept = (-seen.elapsed_days / memory_days).exp();
        let ages = seen.days / memory_days;
        let faded = if ages > 1e-6 {
            -(-ages).exp_m1() / ages
        } else {
            1.0
        };
        let posts = faded_posts(visit, memory_days);
        self.posts = (f64::from(self.posts) * kept + posts) as f32;
        self.days = (f64::from(self.days) * kept + seen.weight_days * faded) as f32;
    }
}

fn faded_posts(visit: &Visit<'_>, memory_days: f64) -> f64 {
    let ages = visit.posts.iter().map(|post| days_between(*post, visit.at));
    ages.map(|age| (-age / memory_days).exp()).sum()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) fast: Fading,
    pub(super) slow: Fading,
    pub(super) bursts: [f32; BURSTS],
    /// Posts by hour of the day, each counted as a unit.
    hours: [u8; HOURS],
    /// The mean logarithm of how far posts spread, in steps, and one; 0 if nobody counted.
    spread: u8,
}

impl Memory {
    pub(super) fn read(state: &State) -> Self {
        let is_ours = state.is_of(tag::ADAPTIVE) && state.visited().is_some();
        let mut fields = state.fields();
        let mut number = || if is_ours { fields.f32().max(0.0) } else { 0.0 };
        let mut fading = || Fading {
            posts: number(),
            days: number(),
        };
        Self {
            fast: fading(),
            slow: fading(),
            bursts: [number(), number(), number()],
            hours: if is_ours { fields.array() } else { [0; HOURS] },
            spread: if is_ours { fields.u8() } else { 0 },
        }
    }

    pub(super) fn write(&self, state: &mut State, at: WorldTime) {
        let mut writer = state.begin(tag::ADAPTIVE, at, true);
        for fading in [self.fast, self.slow] {
            writer.f32(fading.posts).f32(fading.days);
        }
        for burst in self.bursts {
            writer.f32(burst);
        }
        writer.bytes(&self.hours).u8(self.spread);
    }

    /// Takes in bursts and spread of a visit.
    pub(super) fn take_in(&mut self, seen: &Seen, visit: &Visit<'_>) {
        let kept = bursts_left(seen.elapsed_days);
        let mut bursts: [f64; BURSTS] =
            std::array::from_fn(|which| f64::from(self.bursts[which]) * kept[which]);
        for post in visit.posts {
            let left = bursts_left(days_between(*post, visit.at));
            for (burst, left) in bursts.iter_mut().zip(left) {
                *burst += left;
            }
        }
        self.bursts = bursts.map(|burst| burst as f32);
        for spread in visit.spreads {
            self.count_spread(*spread);
        }
    }

    /// Takes in the hours of posts. Each makes what is known of the day fade, by as much as it is likelier to be
    /// the first of another habit than one more of the usual: hardly at an hour that is busy anyway, by a
    /// fifth or more at one where next to nothing was ever posted. Where posts come at all hours a day is
    /// remembered for some forty of them, and whoever moves to another time zone is followed within a dozen.
    pub(super) fn count_hours(
        &mut self,
        posts: &[WorldTime],
        usual: &[f32; HOURS],
        usual_posts: f32,
    ) {
        for post in posts {
            let hour = Shared::hour(*post);
            let here = self.hour_of_day(hour, usual, usual_posts);
            self.fade_hours(CHANGE / here.max(HERE_MIN));
            if self.hours[hour] > u8::MAX - UNIT {
                self.hours = self.hours.map(|count| count / 2);
            }
            self.hours[hour] += UNIT;
        }
    }

    /// Lets the hours fade, if another habit is so many times as likely as the one that is known.
    fn fade_hours(&mut self, odds: f32) {
        if odds < ODDS_MIN {
            return;
        }
        let kept = 1.0 / (1.0 + odds);
        self.hours = self
            .hours
            .map(|count| (f32::from(count) * kept).round() as u8);
    }

    fn count_spread(&mut self, spread: u32) {
        let newest = f64::from(spread).ln_1p() * SPREAD_STEPS;
        let mean = if self.spread == 0 {
            newest
        } else {
            let before = f64::from(self.spread - 1);
            before + SPREAD_NEWEST * (newest - before)
        };
        self.spread = mean.round().clamp(0.0, 254.0) as u8 + 1;
    }

    /// How far a post of the subject is expected to spread, and one.
    pub(super) fn spread(&self) -> f64 {
        (f64::from(self.spread.saturating_sub(1)) / SPREAD_STEPS).exp()
    }

    /// The subject's day, of mean 1, between what was seen and what is usual.
    pub(super) fn hours_of_day(&self, usual: &[f32; HOURS], usual_posts: f32) -> [f32; HOURS] {
        let (mixed_in, scale) = self.mixture(usual_posts);
        std::array::from_fn(|hour| {
            (f32::from(self.hours[hour]) + mixed_in * usual[hour] / HOURS as f32) * scale
        })
    }

    /// One hour of it.
    fn hour_of_day(&self, hour: usize, usual: &[f32; HOURS], usual_posts: f32) -> f32 {
        let (mixed_in, scale) = self.mixture(usual_posts);
        (f32::from(self.hours[hour]) + mixed_in * usual[hour] / HOURS as f32) * scale
    }

    /// How many units of the usual day are mixed in, and what makes a day of mean 1 of all.
    fn mixture(&self, usual_posts: f32) -> (f32, f32) {
        let total: u16 = self.hours.iter().copied().map(u16::from).sum();
        let mixed_in = usual_posts * f32::from(UNIT);
        (mixed_in, HOURS as f32 / (f32::from(total) + mixed_in))
    }
}
