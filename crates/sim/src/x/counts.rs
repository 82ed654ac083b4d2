//! How many posts there were for a query, minute by minute, hour by hour or day by day.

use serde_json::{Value, json};

use super::ask::{self, Ask};
use super::route::Route;
use super::search::read_query;
use crate::answer::Answer;
use crate::bill::Thing;
use crate::dialect::View;
use crate::world::time::{DAY_US, SECOND_US, iso_ms};

/// A page of counts of all times covers so many days.
const PAGE_DAYS: i64 = 31;

impl View<'_> {
    pub(super) fn counts(&self, route: Route<'_>, ask: &Ask<'_>) -> Result<Answer, Answer> {
        let query = read_query(route, ask)?;
        let bounds = self.search_bounds(route, ask)?;
        let step_us = match ask.get("granularity").unwrap_or("hour") {
            "minute" => 60 * SECOND_US,
            "hour" => 3_600 * SECOND_US,
            "day" => DAY_US,
            other => {
                let message = format!(
                    "The `granularity` query parameter value [{other}] is not one of [minute,hour,day]"
                );
                return Err(ask::refused("granularity", other, &message));
            }
        };
        // A page ends where the token says, and begins at most a month before.
        let (from_us, mut until_us) = (bounds.from_us.max(0), bounds.until_us);
        if !ask.is_first_page {
            until_us = until_us.min(ask.below as i64);
        }
        let is_recent = route == Route::CountsRecent;
        let page_us = if is_recent {
            from_us
        } else {
            let first = until_us.div_euclid(DAY_US) - PAGE_DAYS + 1;
            from_us.max(first * DAY_US)
        };
        let mut times: Vec<i64> = self
            .posts_found(&query, page_us)
            .iter()
            .filter(|post| bounds.hold(post))
            .map(|post| post.draft.at_us)
            .collect();
        times.sort_unstable();
        let mut data: Vec<Value> = Vec::new();
        let mut total = 0;
        let mut start_us = page_us;
        while start_us < until_us {
            let end_us = ((start_us.div_euclid(step_us) + 1) * step_us).min(until_us);
            let below = |bound_us: i64| times.partition_point(|&at_us| at_us < bound_us);
            let count = below(end_us) - below(start_us);
            total += count;
            data.push(json!({
                "start": iso_ms(start_us), "end": iso_ms(end_us), "tweet_count": count,
            }));
            start_us = end_us;
        }
        let mut meta = json!({ "total_tweet_count": total });
        if page_us > from_us {
            meta["next_token"] = json!(ask::token(page_us as u64));
        }
        let body = json!({ "data": data, "meta": meta });
        Ok(Answer {
            items: Some(data.len() as u64),
            billed: vec![Thing {
                kind: "counts",
                id: None,
                price: if is_recent { 5_000 } else { 10_000 },
            }],
            ..Answer::json(&body)
        })
    }
}
