//! Who a user is, at any time: kind, name, profile, standing.

use super::World;
use super::dice::{Dice, Purpose};
use super::moment::Moment;
use super::names;
use super::time::{DAY_S, DAY_US, SECOND_US, day_of};
use super::vocabulary::{FIELD_NAMES, SENTENCES, TAGS};

/// The four kinds of user by how they post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Less than a post a week.
    Inactive,
    /// Some posts on most days.
    Regular,
    /// A week full of posts, then weeks of silence.
    Unstable,
    /// Ten posts a day and more, round the clock.
    Authority,
}

/// Whether the network shows a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Active,
    /// Banned; the account is still named.
    Suspended,
    /// Banned so long ago that the account is deleted.
    Gone,
}

/// From this many arriving stubs on a user counts as known.
const KNOWN_FROM_FOLLOWERS: u64 = 60;
/// How many of a thousand are banned for ever within the span, from the start of the history on.
const LAST_BAN_PERMILLE: u64 = 80;
const LAST_BAN_SPAN_DAYS: u64 = 300;
/// A ban for ever deletes the account after this time.
const DELETION_AFTER_DAYS: i64 = 14;
/// How many of a thousand are banned again and again for some days.
const SHORT_BANS_PERMILLE: u64 = 30;
const SHORT_BANS_EVERY_DAYS: u64 = 45;
/// How many of a thousand take another name within the span, from the start of the history on.
const RENAME_PERMILLE: u64 = 80;
const RENAME_SPAN_DAYS: u64 = 150;
/// Users who change their profile do so every so many days.
const PROFILE_CHANGE_DAYS: i64 = 20;
const PROFILE_CHANGE_PERMILLE: u64 = 150;
const NOINDEX_PERMILLE: u64 = 30;
const NOT_INDEXABLE_PERMILLE: u64 = 50;
const HIDDEN_LISTS_PERMILLE: u64 = 30;

/// What hardly ever changes about a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) created_day: i64,
    pub(crate) is_bot: bool,
    pub(crate) is_locked: bool,
    pub(crate) discoverable: Option<bool>,
    pub(crate) has_avatar: bool,
}

/// What a user lets others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether their public posts may be found by searching; about one in twenty says no.
    pub(crate) is_indexable: bool,
    /// Whether they ask search engines to keep away. Never those who are not indexable, so that
    /// whoever honours only one of the two wishes is found out.
    pub(crate) is_noindex: bool,
    pub(crate) hide_collections: Option<bool>,
}

/// What becomes of a user. Fates are dealt like cards, not thrown: however small the world and
/// whatever its seed, each of them strikes at even distances of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    None,
    BannedForEver { from_us: i64 },
    BannedAtTimes { phase_us: i64 },
    Renamed { from_us: i64 },
}

/// A line of a profile's table.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) value_html: String,
    pub(crate) verified_us: Option<i64>,
}

/// What a user says about themselves at one time.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) display_name: String,
    pub(crate) note_html: String,
    pub(crate) fields: Vec<Field>,
}

impl World {
    pub(crate) fn kind(&self, user: u64) -> Kind {
        let roll = Dice::new(self.seed, Purpose::Kind, user, 0).below(1_000);
        let is_known = self.graph.fame(user) >= KNOWN_FROM_FOLLOWERS;
        let (authority, regular, unstable) = if is_known {
            (120, 500, 200)
        } else {
            (2, 240, 130)
        };
        if roll < authority {
            Kind::Authority
        } else if roll < authority + regular {
            Kind::Regular
        } else if roll < authority + regular + unstable {
            Kind::Unstable
        } else {
            Kind::Inactive
        }
    }

    pub(crate) fn standing(&self, user: u64, now: Moment<'_>) -> Standing {
        let own = self.standing_by_fate(user, now.at_us);
        match now.ban(user) {
            Some(standing) if own != Standing::Gone => standing,
            _ => own,
        }
    }

    fn standing_by_fate(&self, user: u64, at_us: i64) -> Standing {
        match self.fate(user) {
            Fate::BannedForEver { from_us } => {
                if at_us >= from_us + DELETION_AFTER_DAYS * DAY_US {
                    Standing::Gone
                } else if at_us >= from_us {
                    Standing::Suspended
                } else {
                    Standing::Active
                }
            }
            Fate::BannedAtTimes { phase_us } => {
                if self.short_ban_left_us(user, at_us - phase_us) > 0 {
                    Standing::Suspended
                } else {
                    Standing::Active
                }
            }
            Fate::None | Fate::Renamed { .. } => Standing::Active,
        }
    }

    /// How much is left of a passing ban, so long after the first began; none if it is over.
    fn short_ban_left_us(&self, user: u64, since_us: i64) -> i64 {
        let days = 4 + Dice::new(self.seed, Purpose::Ban, user, 0).below(17) as i64;
        let period_us = SHORT_BANS_EVERY_DAYS as i64 * DAY_US;
        (days * DAY_US - since_us.rem_euclid(period_us)).max(0)
    }

    /// The first time from another on at which fate lets a user be seen.
    pub(super) fn active_from_us(&self, user: u64, at_us: i64) -> Option<i64> {
        match self.fate(user) {
            Fate::BannedForEver { from_us } => (at_us < from_us).then_some(at_us),
            Fate::BannedAtTimes { phase_us } => {
                Some(at_us + self.short_ban_left_us(user, at_us - phase_us))
            }
            Fate::None | Fate::Renamed { .. } => Some(at_us),
        }
    }

    fn fate(&self, user: u64) -> Fate {
        /// Finer than a second of the longest span.
        const PARTS: u64 = 1_000_000_000;
        const PERMILLE: u64 = PARTS / 1_000;
        let place = u128::from(self.fates.forward(user));
        let part = (place * u128::from(PARTS) / u128::from(self.users)) as u64;
        // How far into a span something happens: as far as the part lies between two bounds.
        let within_us = |first: u64, permille: u64, days: u64| {
            let share = u128::from(part - first) * u128::from(days * DAY_S as u64);
            (share / u128::from(permille * PERMILLE)) as i64 * SECOND_US
        };
        let history_us = self.history_start_day * DAY_US;
        let short_bans = LAST_BAN_PERMILLE * PERMILLE;
        let renames = short_bans + SHORT_BANS_PERMILLE * PERMILLE;
        if part < short_bans {
            let from_us = history_us + within_us(0, LAST_BAN_PERMILLE, LAST_BAN_SPAN_DAYS);
            Fate::BannedForEver { from_us }
        } else if part < renames {
            let phase_us = within_us(short_bans, SHORT_BANS_PERMILLE, SHORT_BANS_EVERY_DAYS);
            Fate::BannedAtTimes { phase_us }
        } else if part < renames + RENAME_PERMILLE * PERMILLE {
            let from_us = history_us + within_us(renames, RENAME_PERMILLE, RENAME_SPAN_DAYS);
            Fate::Renamed { from_us }
        } else {
            Fate::None
        }
    }

    pub(crate) fn is_active(&self, user: u64, now: Moment<'_>) -> bool {
        self.standing(user, now) == Standing::Active
    }

    pub(crate) fn username(&self, user: u64, at_us: i64) -> String {
        let is_renamed = matches!(self.fate(user), Fate::Renamed { from_us } if from_us <= at_us);
        let generation = u64::from(is_renamed);
        names::username(
            &mut Dice::new(self.seed, Purpose::Username, user, generation),
            user,
        )
    }

    /// The user who has a name now. A name that was given up belongs to nobody.
    pub(crate) fn user_named(&self, username: &str, at_us: i64) -> Option<u64> {
        let user = names::user_in(username).filter(|&user| user < self.users)?;
        self.username(user, at_us)
            .eq_ignore_ascii_case(username)
            .then_some(user)
    }

    pub(crate) fn traits(&self, user: u64) -> Traits {
        let mut dice = Dice::new(self.seed, Purpose::Person, user, 0);
        let bot_permille = if self.kind(user) == Kind::Authority {
            400
        } else {
            15
        };
        Traits {
            // Older than any edge, so that nobody is followed before they exist.
            created_day: self.anchor_day - 1_460 - dice.below(730) as i64,
            is_bot: dice.chance(bot_permille),
            is_locked: dice.chance(80),
            discoverable: dice.pick(&[Some(true), Some(true), Some(false), None]),
            has_avatar: dice.chance(800),
        }
    }

    pub(crate) fn wishes(&self, user: u64) -> Wishes {
        let mut dice = Dice::new(self.seed, Purpose::Wishes, user, 0);
        let roll = dice.below(1_000);
        let not_indexable = NOINDEX_PERMILLE..NOINDEX_PERMILLE + NOT_INDEXABLE_PERMILLE;
        Wishes {
            is_noindex: roll < NOINDEX_PERMILLE,
            is_indexable: !not_indexable.contains(&roll),
            hide_collections: if dice.chance(HIDDEN_LISTS_PERMILLE) {
                Some(true)
            } else {
                dice.pick(&[None, None, Some(false)])
            },
        }
    }

    pub(crate) fn profile(&self, user: u64, at_us: i64) -> Profile {
        let mut lasting = Dice::new(self.seed, Purpose::Profile, user, 0);
        let changes = lasting.chance(PROFILE_CHANGE_PERMILLE);
        let phase = lasting.below(PROFILE_CHANGE_DAYS as u64) as i64;
        let generation = if changes {
            (day_of(at_us) + phase) / PROFILE_CHANGE_DAYS
        } else {
            0
        };
        let mut dice = Dice::new(self.seed, Purpose::Profile, user, generation as u64 + 1);
        let fields_count = if lasting.chance(250) {
            1 + lasting.below(3)
        } else {
            0
        };
        let created_us = self.traits(user).created_day * DAY_US;
        let fields = (0..fields_count)
            .map(|_| field(&mut lasting, user, created_us))
            .collect();
        Profile {
            display_name: names::display_name(&mut lasting, &mut dice),
            note_html: note(&mut dice, self.origin(user)),
            fields,
        }
    }
}

fn field(dice: &mut Dice, user: u64, created_us: i64) -> Field {
    let name = dice.pick(FIELD_NAMES);
    if dice.chance(500) {
        let value_html = format!("no. {user} &amp; still here");
        return Field {
            name,
            value_html,
            verified_us: None,
        };
    }
    let value_html = format!(
        "<a href=\"https://home.example/{user}\" target=\"_blank\" rel=\"nofollow noopener me\" \
         translate=\"no\"><span class=\"invisible\">https://</span><span class=\"\">home.example/\
         {user}</span><span class=\"invisible\"></span></a>"
    );
    let verified_us = dice
        .chance(500)
        .then(|| created_us + dice.below(1 << 46) as i64 / 1_000 * 1_000);
    Field {
        name,
        value_html,
        verified_us,
    }
}

fn note(dice: &mut Dice, origin: &str) -> String {
    if dice.chance(300) {
        return String::new();
    }
    let mut html = format!("<p>{}", dice.pick(SENTENCES).1);
    if dice.chance(300) {
        html.push_str("<br />");
        html.push_str(dice.pick(SENTENCES).1);
    }
    if dice.chance(300) {
        html.push(' ');
        html.push_str(&super::text::hashtag_html(origin, dice.pick_early(TAGS)));
    }
    html.push_str("</p>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);

    #[test]
    fn names_lead_back_to_their_users_until_they_are_given_up() {
        let world = World::new(3, 2_000, AT_US).unwrap();
        let later_us = AT_US + 100 * DAY_US;
        let mut renamed = 0;
        for user in 0..2_000 {
            let name = world.username(user, AT_US);
            assert_eq!(world.user_named(&name, AT_US), Some(user));
            assert_eq!(world.user_named(&name.to_uppercase(), AT_US), Some(user));
            if world.user_named(&name, later_us).is_none() {
                renamed += 1;
                assert_eq!(
                    world.user_named(&world.username(user, later_us), later_us),
                    Some(user)
                );
            }
        }
        assert!((40..200).contains(&renamed), "{renamed}");
        assert_eq!(world.user_named("nobody", AT_US), None);
        assert_eq!(world.user_named("", AT_US), None);
    }

    #[test]
    fn all_kinds_and_all_standings_occur() {
        let world = World::new(3, 2_000, AT_US).unwrap();
        for kind in [
            Kind::Inactive,
            Kind::Regular,
            Kind::Unstable,
            Kind::Authority,
        ] {
            let count = (0..2_000).filter(|&user| world.kind(user) == kind).count();
            assert!(count >= 5, "{kind:?}: {count}");
        }
        for standing in [Standing::Active, Standing::Suspended, Standing::Gone] {
            assert!(
                (0..2_000).any(|user| world.standing(user, NOW) == standing),
                "{standing:?}"
            );
        }
    }

    #[test]
    fn a_temporary_ban_ends() {
        let world = World::new(3, 2_000, AT_US).unwrap();
        let returned = (0..2_000).filter(|&user| {
            world.standing(user, NOW) == Standing::Suspended
                && world.is_active(user, Moment::undisturbed(AT_US + 25 * DAY_US))
        });
        assert!(returned.count() > 0);
    }
}
