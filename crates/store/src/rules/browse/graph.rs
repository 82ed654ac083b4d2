//! A picture of who follows whom, from a bounded number of relations.

use super::labels;
use super::object::followed;
use super::rows::{class_in, each_of};
use crate::StoreError;
use crate::browse::{Graph, GraphNode, GraphQuestion};
use crate::cell::cells;
use crate::database::Database;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const NODES_MAX: usize = 1_000;
/// Edges that a picture has at the most.
const EDGES_MAX: usize = 20_000;
/// Relations of one node that are looked at for others in the picture.
const RELATIONS_PER_NODE: i64 = 500;
/// Places in the order of keys from which relations are read, and how many at each.
const JUMPS: i64 = 50;
const RELATIONS_PER_JUMP: i64 = 400;

pub(crate) fn graph(database: &dyn Database, question: GraphQuestion) -> Result<Graph, StoreError> {
    let nodes_max = question.nodes_max.clamp(1, NODES_MAX);
    let (keys, is_cut) = match question.around {
        Some(key) => neighbours(database, followed(database, key.0)?, nodes_max)?,
        None => connected(database, nodes_max)?,
    };
    let edges = edges(database, &keys)?;
    let nodes = nodes(database, &keys)?;
    let places: HashMap<i64, usize> = nodes
        .iter()
        .enumerate()
        .map(|(place, node)| (node.label.key.0, place))
        .collect();
    let edges = edges
        .into_iter()
        .filter_map(|(from, to)| Some((*places.get(&from)?, *places.get(&to)?)));
    Ok(Graph {
        edges: edges.collect(),
        nodes,
        is_cut,
    })
}

/// A user and those around: whom it follows, and who follows it, by turns.
fn neighbours(
    database: &dyn Database,
    key: i64,
    nodes_max: usize,
) -> Result<(Vec<i64>, bool), StoreError> {
    let limit = i64::try_from(nodes_max).unwrap_or(1);
    let following = "SELECT target FROM user_relations WHERE source = ?1
                     ORDER BY target DESC LIMIT ?2";
    let followers = "SELECT source FROM user_relations WHERE target = ?1
                     ORDER BY source DESC LIMIT ?2";
    let mut lists = Vec::new();
    for sql in [following, followers] {
        let list: Vec<i64> = database.all(sql, cells![key, limit], |row| row.get(0))?;
        lists.push(list);
    }
    let mut keys = vec![key];
    let mut met = BTreeSet::from([key]);
    let longest = lists.iter().map(Vec::len).max().unwrap_or_default();
    let by_turns = (0..longest).flat_map(|place| {
        let lists = &lists;
        lists
            .iter()
            .filter_map(move |list| list.get(place).copied())
    });
    for other in by_turns {
        if keys.len() >= nodes_max {
            return Ok((keys, true));
        }
        if met.insert(other) {
            keys.push(other);
        }
    }
    Ok((keys, false))
}

/// Those who have the most relations among some that are read from everywhere.
fn connected(database: &dyn Database, nodes_max: usize) -> Result<(Vec<i64>, bool), StoreError> {
    // Asked for one by one, each end is one look into the index.
    let span = "SELECT coalesce((SELECT min(source) FROM user_relations), 0),
                       coalesce((SELECT max(source) FROM user_relations), 0)";
    let (first, last): (i64, i64) =
        database.only(span, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let step = last.saturating_sub(first) / JUMPS + 1;
    let sql = "SELECT source, target FROM user_relations WHERE source >= ?1
               ORDER BY source, target LIMIT ?2";
    let mut met: BTreeSet<(i64, i64)> = BTreeSet::new();
    for jump in 0..JUMPS {
        let from = first.saturating_add(step.saturating_mul(jump));
        if from > last {
            break;
        }
        database.each(sql, cells![from, RELATIONS_PER_JUMP], |row| {
            met.insert((row.get(0)?, row.get(1)?));
            Ok(())
        })?;
    }
    let mut degrees: BTreeMap<i64, u32> = BTreeMap::new();
    for (source, target) in &met {
        *degrees.entry(*source).or_default() += 1;
        *degrees.entry(*target).or_default() += 1;
    }
    let mut keys: Vec<(u32, i64)> = degrees
        .into_iter()
        .map(|(key, known)| (known, key))
        .collect();
    keys.sort_unstable_by_key(|(degree, key)| (std::cmp::Reverse(*degree), *key));
    let is_cut = keys.len() > nodes_max;
    keys.truncate(nodes_max);
    Ok((keys.into_iter().map(|(_, key)| key).collect(), is_cut))
}

/// Relations among the nodes. Of those who follow very many, only the beginning is looked at.
fn edges(database: &dyn Database, keys: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
    let nodes: BTreeSet<i64> = keys.iter().copied().collect();
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT target FROM user_relations
               WHERE source = ?1 AND target >= ?2 AND target <= ?3 ORDER BY target LIMIT ?4";
    let mut edges = Vec::new();
    for key in keys {
        let cells = cells![*key, *first, *last, RELATIONS_PER_NODE];
        database.each(sql, cells, |row| {
            let target: i64 = row.get(0)?;
            if nodes.contains(&target) {
                edges.push((*key, target));
            }
            Ok(())
        })?;
        if edges.len() >= EDGES_MAX {
            edges.truncate(EDGES_MAX);
            break;
        }
    }
    Ok(edges)
}

fn nodes(database: &dyn Database, keys: &[i64]) -> Result<Vec<GraphNode>, StoreError> {
    let wanted: BTreeSet<i64> = keys.iter().copied().collect();
    let mut labels = labels(database, &wanted)?;
    let mut users: HashMap<i64, (Option<i64>, Option<String>)> = HashMap::new();
    let sql = "SELECT key, followers_count, extra FROM users WHERE key IN ({keys})";
    each_of(database, sql, &wanted, |row| {
        let extra: Option<String> = row.get(2)?;
        users.insert(row.get(0)?, (row.get(1)?, class_in(extra.as_deref())));
        Ok(())
    })?;
    let mut depths: HashMap<i64, u32> = HashMap::new();
    let sql = "SELECT key, depth FROM subjects WHERE key IN ({keys})";
    each_of(database, sql, &wanted, |row| {
        depths.insert(row.get(0)?, row.get(1)?);
        Ok(())
    })?;
    let nodes = keys.iter().filter_map(|key| {
        let (followers, class) = users.remove(key).unwrap_or_default();
        Some(GraphNode {
            label: labels.remove(key)?,
            followers,
            class,
            depth: depths.get(key).copied(),
        })
    });
    Ok(nodes.collect())
}
