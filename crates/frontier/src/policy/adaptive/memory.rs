//! What `adaptive` remembers of one subject: 64 bytes.

use crate::policy::rhythm::HOURS;
use crate::policy::{Shared, State, Visit, days_between, tag};
use kittiwake_model::WorldTime;

/// How long a burst is felt: a day, six hours, an hour.
pub(super) const BURST_DAYS: [f64; 3] = [1.0, 0.25, 1.0 / 24.0];

/// Posts seen and days watched, both fading with time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fading {
    pub(super) posts: f32,
    pub(super) days: f32,
}

impl Fading {
    pub(super) fn take_in(
        &mut self,
        memory_days: f64,
        elapsed: f64,
        span: f64,
        weight: f64,
        visit: &Visit<'_>,
    ) {
        let kept = (-elapsed / memory_days).exp();
        let posts: f64 = visit
            .posts
            .iter()
            .map(|post| (-days_between(*post, visit.at) / memory_days).exp())
            .sum();
        let x = span / memory_days;
        let faded = if x > 1e-6 {
            (1.0 - (-x).exp()) / x
        } else {
            1.0
        };
        self.posts = (f64::from(self.posts) * kept + posts) as f32;
        self.days = (f64::from(self.days) * kept + weight * faded) as f32;
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) fast: Fading,
    pub(super) slow: Fading,
    pub(super) bursts: [f32; 3],
    hours: [u8; HOURS],
}

impl Memory {
    pub(super) fn read(state: &State) -> Self {
        let is_ours = state.is_of(tag::ADAPTIVE);
        let mut fields = state.fields();
        let mut number = || if is_ours { fields.f32().max(0.0) } else { 0.0 };
        Self {
            fast: Fading {
                posts: number(),
                days: number(),
            },
            slow: Fading {
                posts: number(),
                days: number(),
            },
            bursts: [number(), number(), number()],
            hours: if is_ours { fields.array() } else { [0; HOURS] },
        }
    }

    pub(super) fn write(&self, state: &mut State, at: WorldTime) {
        let mut writer = state.begin(tag::ADAPTIVE, at, true);
        writer
            .f32(self.fast.posts)
            .f32(self.fast.days)
            .f32(self.slow.posts)
            .f32(self.slow.days);
        for burst in self.bursts {
            writer.f32(burst);
        }
        writer.bytes(&self.hours);
    }

    pub(super) fn burst(&mut self, elapsed: f64, visit: &Visit<'_>) {
        for (burst, days) in self.bursts.iter_mut().zip(BURST_DAYS) {
            let posts: f64 = visit
                .posts
                .iter()
                .map(|post| (-days_between(*post, visit.at) / days).exp())
                .sum();
            *burst = (f64::from(*burst) * (-elapsed / days).exp() + posts) as f32;
        }
    }

    pub(super) fn count_hours(&mut self, posts: &[WorldTime]) {
        for post in posts {
            let hour = Shared::hour(*post);
            if self.hours[hour] == u8::MAX {
                for count in &mut self.hours {
                    *count /= 2;
                }
            }
            self.hours[hour] += 1;
        }
    }

    pub(super) fn hours_of_day(&self, usual: &[f32; HOURS], usual_posts: f32) -> [f32; HOURS] {
        let total: f32 = self.hours.iter().map(|count| f32::from(*count)).sum();
        let scale = HOURS as f32 / (total + usual_posts);
        std::array::from_fn(|hour| {
            (f32::from(self.hours[hour]) + usual_posts * usual[hour] / HOURS as f32) * scale
        })
    }
}
