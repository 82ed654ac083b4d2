//! Brings together what a forecast needs: the definition, the store, the ledger.

use super::{
    Allowance, Assumptions, Case, Counter, Estimate, Forecast, Known, QueryForecast, Reckoning,
    RobotRules, StepRules, Subject, Tally, Task, Usual, Walked, Wire, all_due, duration, reckon,
};
use crate::credential::Credential;
use crate::open::{RoundPlace, check_same_crawl, expansion_of, no_seeds};
use crate::permits::Pace;
use crate::plan::Whose;
use crate::settings::{CrawlSettings, Limits};
use crate::{Clock, EngineError};
use kittiwake_model::{
    BudgetId, BudgetRule, Expansion, Identity, Key, LimitTime, List, MONEY_SCALE, Name, Table,
    Unit, WindowKind, WorldTime,
};
use kittiwake_network::budget::{after_reserve, window_at};
use kittiwake_network::{Ask, AuthNeed, Network, Page, Query, RequestError, Robot, Whom};
use kittiwake_store::Store;
use kittiwake_store::ledger::{BudgetUsage, Ledger};
use kittiwake_store::outlook::{Outlook, OutlookQuestion, PostsQuestion, Prospect};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Subjects that are looked at one by one.
const PROSPECTS_MAX: usize = 200_000;
/// How long an answer takes on hosts of which nothing is known.
const USUAL_LATENCY_MS: f64 = 200.0;
/// As the permits have it: longer windows are spread evenly only by crawls that do not end.
const EVEN_WINDOW_US_MAX: i64 = 3_600_000_000;

/// What a store means to a forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The crawl will go on with it.
    GoOn,
    /// It only shows what is to be expected: the crawl will begin anew.
    Sample,
}

/// Reckons what a crawl will take. Spends nothing, and changes nothing.
pub async fn forecast(
    settings: &CrawlSettings,
    store: Option<(&dyn Store, Basis)>,
    ledger: Option<&Ledger>,
    clock: &Clock,
) -> Result<Forecast, EngineError> {
    let expansion = expansion_of(settings)?;
    let now = clock.world();
    let (outlook, round, recent) = match store {
        Some((store, _)) => look(settings, store, &expansion, now).await?,
        None if settings.seeds.is_empty() => return Err(no_seeds()),
        None => (Outlook::default(), now, None),
    };
    let is_sample = store.is_some_and(|(_, basis)| basis == Basis::Sample);
    let known = Reader {
        settings,
        round,
        now,
        is_sample,
    }
    .known(outlook)?;
    let usage = match (ledger, settings.limits) {
        (Some(ledger), Limits::Keep { .. }) => ledger.usage(clock.limit()).await?,
        _ => Vec::new(),
    };
    let unknown_seeds = known.subjects.iter().filter(|it| is_unknown(it)).count() as u64;
    let wire = Wire {
        latency_ms: recent.unwrap_or(USUAL_LATENCY_MS),
        concurrency: settings.concurrency as u64,
    };
    let assumptions = Assumptions {
        latency_ms: wire.latency_ms,
        is_latency_measured: recent.is_some(),
        concurrency: wire.concurrency,
        credentials: credentials_of(settings).into_iter().flatten().count() as u64,
        is_endless: !settings.rounds.end(),
    };
    let reckonings = Reckonings {
        low: reckon(&known, Case::Low),
        likely: reckon(&known, Case::Likely),
        high: reckon(&known, Case::High),
    };
    let calls = reckonings.estimate(|it| it.tally.calls());
    let units = Units::of(settings, &reckonings)?;
    let allowances = units.allowances(settings, &usage, clock.limit());
    Ok(Forecast {
        calls,
        queries: reckonings.queries(&known),
        people: reckonings.people(),
        money: units.money(),
        duration: duration(&calls, &allowances, &wire, clock.limit()),
        assumptions,
        unknown_seeds,
        is_vague: unknown_seeds > 0 || calls.high > 1.5 * calls.low,
    })
}

/// Nobody knows how many calls it takes, and it is not said to be gone.
fn is_unknown(subject: &Subject) -> bool {
    let is_due = subject.tasks.iter().any(|task| task.is_due);
    subject.needs_lookup && is_due && !subject.is_counted()
}

/// The credentials that calls are shared by; anonymous calls have none.
fn credentials_of(settings: &CrawlSettings) -> Vec<Option<&Credential>> {
    if settings.credentials.is_empty() {
        return vec![None];
    }
    settings.credentials.iter().map(Some).collect()
}

/// What the store tells, since when its round goes on, and how quickly it was answered lately.
async fn look(
    settings: &CrawlSettings,
    store: &dyn Store,
    expansion: &Expansion,
    now: WorldTime,
) -> Result<(Outlook, WorldTime, Option<f64>), EngineError> {
    let last = store.last_run().await?;
    match &last {
        Some((_, record)) => check_same_crawl(settings, record)?,
        None if settings.seeds.is_empty() => return Err(no_seeds()),
        None => {}
    }
    let place = RoundPlace {
        store,
        settings,
        expansion,
        now,
    };
    let round = place.round(last.as_ref().map(|(_, record)| record)).await?;
    let network = &settings.network;
    let robots = settings
        .robots
        .iter()
        .filter_map(|name| network.robot(name));
    let steps = robots.flat_map(|robot| &robot.steps);
    let queries = steps.filter_map(|step| network.query(&step.query));
    let lists = queries.filter_map(|query| Some((query.name.clone(), query.list?)));
    let question = OutlookQuestion {
        depth_max: settings.depth,
        prospects_max: PROSPECTS_MAX,
        lists: lists.collect(),
        posts: posts_questions(settings, round),
    };
    let outlook = store.outlook(question).await?;
    let recent = store.detail().await?.recent;
    let latency_ms =
        (recent.calls > 0).then(|| recent.network_us as f64 / 1e3 / recent.calls as f64);
    Ok((outlook, round, latency_ms))
}

fn posts_questions(settings: &CrawlSettings, round: WorldTime) -> Vec<PostsQuestion> {
    let network = &settings.network;
    let robots = settings
        .robots
        .iter()
        .filter_map(|name| network.robot(name));
    let of_posts = robots.filter(|robot| network.table_of(&robot.kind) == Some(Table::Statuses));
    let question = |robot: &Robot| {
        let query = robot.steps.first().and_then(|it| network.query(&it.query));
        let pages = query.and_then(|query| {
            Some((
                Name::from(network.length_of(query)?.column()),
                query.page_size()?,
            ))
        });
        PostsQuestion {
            robot: robot.name.clone(),
            unless_zero: robot.unless_zero.clone(),
            begins_visited: robot.begins_visited,
            pages,
            not_visited_since: settings.rounds.end().then_some(round),
        }
    };
    of_posts.map(question).collect()
}

/// Makes subjects of what the store tells and of the seeds that were given.
struct Reader<'a> {
    settings: &'a CrawlSettings,
    round: WorldTime,
    now: WorldTime,
    /// Nothing of what was done so far counts.
    is_sample: bool,
}

impl Reader<'_> {
    fn network(&self) -> &Network {
        &self.settings.network
    }

    fn known(&self, outlook: Outlook) -> Result<Known, EngineError> {
        let settings = self.settings;
        let robots: Vec<RobotRules> = self.robots()?;
        let within_reach = outlook.depths.range(..=settings.depth);
        let all: u64 = within_reach.map(|(_, count)| count).sum();
        let told = outlook.prospects.len();
        let mut subjects: Vec<Subject> = Vec::with_capacity(told + settings.seeds.len());
        let mut names: HashMap<(Name, Name, String), usize> = HashMap::new();
        for prospect in outlook.prospects {
            let own = prospect.identity.iter().flat_map(names_of);
            names.extend(own.map(|name| (name, subjects.len())));
            subjects.push(self.subject(&robots, prospect));
        }
        for identity in self.seeds()? {
            let own = names_of(&identity);
            match own.iter().find_map(|name| names.get(name)) {
                // What was found out about it will have to be found out again.
                Some(place) if self.is_sample => {
                    let asked = self.how_asked(&robots, &identity);
                    subjects[*place].needs_lookup = asked == Asked::AfterLookup;
                }
                Some(_) => {}
                None => {
                    names.extend(own.into_iter().map(|name| (name, subjects.len())));
                    subjects.push(self.new_subject(&robots, identity));
                }
            }
        }
        let lookup = self.lookup(&robots);
        Ok(Known {
            lookup,
            follow: settings.follow,
            depth_max: settings.depth,
            history: settings.history,
            now: self.now,
            usual: Usual::of(&subjects),
            subjects,
            weight: if told == 0 {
                1.0
            } else {
                (all as f64 / told as f64).max(1.0)
            },
            leading_out: outlook.leading_out,
            posts: outlook.posts,
            are_posts_kept: !self.is_sample,
            robots,
        })
    }

    /// The seeds, and the host itself where it is a subject.
    fn seeds(&self) -> Result<Vec<Identity>, EngineError> {
        let settings = self.settings;
        let mut seeds: Vec<Identity> = self
            .network()
            .host_identity(&settings.host)
            .into_iter()
            .collect();
        for text in &settings.seeds {
            let seed = self.network().seed(text, &settings.host);
            seeds.push(seed.map_err(|error| EngineError::Usage(error.to_string()))?);
        }
        Ok(seeds)
    }

    fn robots(&self) -> Result<Vec<RobotRules>, EngineError> {
        let network = self.network();
        let mut robots = Vec::with_capacity(self.settings.robots.len());
        for name in &self.settings.robots {
            let robot = network
                .robot(name)
                .ok_or_else(|| EngineError::Broken(format!("no robot {name:?}")))?;
            robots.push(self.rules(robot));
        }
        Ok(robots)
    }

    fn rules(&self, robot: &Robot) -> RobotRules {
        let network = self.network();
        let is_known = !self.settings.credentials.is_empty();
        let queries = robot.steps.iter().filter_map(|it| network.query(&it.query));
        // Nothing is asked that would not be answered.
        let asked: Vec<&Query> = queries
            .filter(|query| is_known || query.auth != AuthNeed::Required)
            // How much answers leave out is not known before.
            .filter(|query| !query.expands())
            .collect();
        let batch = match asked.as_slice() {
            [query] if query.pages_max <= 1 && robot.steps.len() == 1 => query.batch_max.max(1),
            _ => 1,
        };
        let step = |query: &&Query| StepRules {
            query: query.name.clone(),
            page_size: query.page_size(),
            pages_max: query.pages_max,
            length: network.length_of(query),
            is_incremental: query.incremental,
            digest: query.paging_digest.clone(),
        };
        RobotRules {
            name: robot.name.clone(),
            kind: robot.kind.clone(),
            steps: asked.iter().map(step).collect(),
            batch: u64::from(batch),
            is_of_posts: network.table_of(&robot.kind) == Some(Table::Statuses),
            begins_visited: robot.begins_visited,
            brings: !robot.brings.is_empty(),
        }
    }

    /// The first robot of people asks for their ids.
    fn lookup(&self, robots: &[RobotRules]) -> Option<(usize, Name)> {
        robots.iter().enumerate().find_map(|(place, robot)| {
            let mut queries = self.network().resolve_queries(&robot.kind);
            let query = queries.find(|it| matches!(it.whom(), Whom::Home | Whom::Crawl))?;
            Some((place, query.name.clone()))
        })
    }

    fn subject(&self, robots: &[RobotRules], prospect: Prospect) -> Subject {
        let task = |robot: &RobotRules| {
            let mut visits = prospect.visits.iter();
            let Some(row) = visits.find(|visit| visit.robot == robot.name) else {
                return Task {
                    is_due: true,
                    ..Task::default()
                };
            };
            let is_due = if self.settings.rounds.end() {
                row.visited.is_none_or(|visited| visited < self.round)
            } else {
                row.due <= self.now
            };
            Task {
                visits: row.visits,
                visited: row.visited,
                is_due,
            }
        };
        let tasks: Vec<Task> = robots.iter().map(task).collect();
        let walked = |list: List| {
            let mut walks = prospect.walks.iter();
            let walk = walks.find(|walk| {
                let query = self.network().query(&walk.query);
                query.is_some_and(|query| query.list == Some(list))
            });
            match walk {
                None => Walked::Nothing,
                Some(walk) if walk.is_complete => Walked::All,
                Some(walk) => Walked::Items(u64::from(walk.items)),
            }
        };
        let (walked_following, walked_followers) =
            (walked(List::Following), walked(List::Followers));
        let is_let_be = prospect.opted_out && !self.settings.include_opted_out;
        let asked = prospect
            .identity
            .as_ref()
            .map(|it| self.how_asked(robots, it));
        let (tasks, walks) = if self.is_sample {
            (all_due(robots.len()), Vec::new())
        } else {
            (tasks, prospect.walks)
        };
        Subject {
            kind: prospect.kind,
            depth: prospect.depth,
            following: prospect.following,
            followers: prospect.followers,
            posts: prospect.posts,
            created: prospect.created,
            opted_out: is_let_be || asked == Some(Asked::Never),
            is_invalid: prospect.is_invalid,
            needs_lookup: asked == Some(Asked::AfterLookup),
            walked_following,
            walked_followers,
            tasks,
            walks,
        }
    }

    fn new_subject(&self, robots: &[RobotRules], identity: Identity) -> Subject {
        let asked = self.how_asked(robots, &identity);
        let prospect = Prospect {
            subject: Key(0),
            kind: identity.kind.clone(),
            depth: 0,
            identity: Some(identity),
            following: None,
            followers: None,
            posts: None,
            created: None,
            opted_out: asked == Asked::Never,
            is_invalid: false,
            visits: Vec::new(),
            walks: Vec::new(),
        };
        self.subject(robots, prospect)
    }

    /// Whether a subject's id is known, or has to be asked for.
    fn how_asked(&self, robots: &[RobotRules], identity: &Identity) -> Asked {
        let network = self.network();
        let mut own = robots.iter().filter(|robot| robot.kind == identity.kind);
        let Some(query) = own
            .find_map(|robot| robot.steps.first())
            .and_then(|step| network.query(&step.query))
        else {
            return Asked::AtOnce;
        };
        let asked = network.request(&Ask {
            query,
            base: &self.settings.base,
            host: &self.settings.host,
            subjects: &[identity],
            page: Page::First,
            authenticated: !self.settings.credentials.is_empty(),
        });
        match asked {
            Err(RequestError::MissingAlias { .. })
                if network.resolve_queries(&identity.kind).next().is_some() =>
            {
                Asked::AfterLookup
            }
            Err(_) => Asked::Never,
            Ok(_) => Asked::AtOnce,
        }
    }
}

/// When a subject can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    AtOnce,
    AfterLookup,
    Never,
}

/// Everything by which an object is known. Nobody tells handles apart by their case.
fn names_of(identity: &Identity) -> Vec<(Name, Name, String)> {
    let canonical = identity.canonical.iter();
    let canonical = canonical.map(|id| (identity.kind.clone(), Name::from(""), id.clone()));
    let aliases = identity.aliases.iter();
    let aliases = aliases.map(|it| (identity.kind.clone(), it.name.clone(), it.id.to_lowercase()));
    canonical.chain(aliases).collect()
}

/// The three ways of reckoning, done.
struct Reckonings {
    low: Reckoning,
    likely: Reckoning,
    high: Reckoning,
}

impl Reckonings {
    fn of(&self, case: Case) -> &Reckoning {
        match case {
            Case::Low => &self.low,
            Case::Likely => &self.likely,
            Case::High => &self.high,
        }
    }

    fn estimate(&self, number: impl Fn(&Reckoning) -> f64) -> Estimate {
        Estimate::of(|case| number(self.of(case)))
    }

    fn queries(&self, known: &Known) -> Vec<QueryForecast> {
        let mut asked: BTreeSet<(usize, Name)> = BTreeSet::new();
        for reckoning in [&self.low, &self.likely, &self.high] {
            let keys = reckoning.tally.0.keys();
            asked.extend(keys.map(|(robot, query, _)| (*robot, query.clone())));
        }
        let calls_of = |tally: &Tally, robot: usize, query: &Name| -> f64 {
            let own = tally
                .0
                .iter()
                .filter(|((r, q, _), _)| (*r, q) == (robot, query));
            own.map(|(_, (calls, _))| calls).sum()
        };
        let forecast = |(robot, query): (usize, Name)| QueryForecast {
            robot: known.robots[robot].name.clone(),
            calls: self.estimate(|it| calls_of(&it.tally, robot, &query)),
            query,
        };
        asked.into_iter().map(forecast).collect()
    }

    fn people(&self) -> Vec<Estimate> {
        let depths = 0..self.likely.people.len();
        let people =
            |depth: usize| self.estimate(|it| it.people.get(depth).copied().unwrap_or_default());
        depths.map(people).collect()
    }
}

/// What the calls take of every budget.
struct Units<'a> {
    /// By the counters' names in the ledger, one for each credential.
    taken: BTreeMap<Vec<BudgetId>, (&'a BudgetRule, Estimate)>,
}

impl<'a> Units<'a> {
    fn of(settings: &'a CrawlSettings, reckonings: &Reckonings) -> Result<Self, EngineError> {
        let network = &*settings.network;
        let mut taken: BTreeMap<Vec<BudgetId>, (&BudgetRule, Estimate)> = BTreeMap::new();
        for case in [Case::Low, Case::Likely, Case::High] {
            for ((_, query, place), (calls, items)) in &reckonings.of(case).tally.0 {
                let rules = network
                    .query(query)
                    .ok_or_else(|| EngineError::Broken(format!("no query {query:?}")))?;
                let is_authenticated =
                    !settings.credentials.is_empty() && rules.auth != AuthNeed::None;
                for cost in network.costs_of(rules, *place, is_authenticated, 1) {
                    let Some(rule) = network.budget(&cost.budget) else {
                        continue;
                    };
                    let ids: BTreeSet<BudgetId> = credentials_of(settings)
                        .into_iter()
                        .map(|credential| {
                            let whose = Whose {
                                network,
                                base: &settings.base,
                                credential,
                                clock_source: &settings.clock_source,
                            };
                            whose.charge(query, &cost).budget
                        })
                        .collect();
                    let units = cost.call as f64 * calls + cost.item as f64 * items;
                    let ids = ids.into_iter().collect();
                    let (_, sum) = taken.entry(ids).or_insert((rule, Estimate::default()));
                    match case {
                        Case::Low => sum.low += units,
                        Case::Likely => sum.likely += units,
                        Case::High => sum.high += units,
                    }
                }
            }
        }
        for (_, units) in taken.values_mut() {
            units.low = units.low.min(units.likely);
            units.high = units.high.max(units.likely);
        }
        Ok(Self { taken })
    }

    /// What is to be paid, by currency.
    fn money(&self) -> BTreeMap<Name, Estimate> {
        let mut money: BTreeMap<Name, Estimate> = BTreeMap::new();
        for (rule, units) in self.taken.values() {
            if let Unit::Money(currency) = &rule.unit {
                let sum = money.entry(currency.clone()).or_default();
                sum.low += units.low / MONEY_SCALE as f64;
                sum.likely += units.likely / MONEY_SCALE as f64;
                sum.high += units.high / MONEY_SCALE as f64;
            }
        }
        money
    }

    fn allowances(
        &self,
        settings: &CrawlSettings,
        usage: &[BudgetUsage],
        now: LimitTime,
    ) -> Vec<Allowance> {
        let Limits::Keep { reserve, pace, .. } = settings.limits else {
            return Vec::new();
        };
        let is_endless = !settings.rounds.end();
        let mut allowances = Vec::new();
        for (ids, (rule, units)) in &self.taken {
            let counter = |id: &BudgetId| {
                let used = usage.iter().find(|used| used.budget == *id);
                counter(rule, used, reserve, now).map(|counter| Counter {
                    is_even: pace == Pace::Even
                        && (is_endless || counter.length_us <= EVEN_WINDOW_US_MAX),
                    ..counter
                })
            };
            let is_at_once = rule.kind == WindowKind::Concurrency;
            let counters: Vec<Counter> = ids.iter().filter_map(counter).collect();
            if counters.is_empty() && !is_at_once {
                continue;
            }
            let places = after_reserve(rule.limit, reserve) * ids.len() as u64;
            allowances.push(Allowance {
                budget: rule.name.clone(),
                unit: rule.unit.clone(),
                units: *units,
                places: is_at_once.then_some(places),
                counters,
            });
        }
        allowances
    }
}

/// How one counter stands; nothing for limits that only the server knows.
fn counter(
    rule: &BudgetRule,
    usage: Option<&BudgetUsage>,
    reserve: f64,
    now: LimitTime,
) -> Option<Counter> {
    let length_us = rule.kind.length_us()?;
    let limit = match (&rule.kind, usage) {
        (WindowKind::Percent { .. }, None) => return None,
        (WindowKind::Percent { .. }, Some(usage)) => usage.limit,
        _ => after_reserve(rule.limit, reserve),
    };
    let resets = match window_at(&rule.kind, now) {
        Some(window) => window.end,
        None => usage
            .and_then(|usage| usage.resets)
            .unwrap_or_else(|| now.plus_us(length_us)),
    };
    Some(Counter {
        limit,
        used: usage.map_or(0, |usage| usage.used).min(limit),
        resets,
        length_us,
        blocked_until: usage.and_then(|usage| usage.blocked_until),
        is_even: false,
    })
}
