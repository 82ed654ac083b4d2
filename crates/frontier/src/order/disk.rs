//! The due order of a whole crawl, on disk. Only this file knows fjall.
//!
//! It is **derived** from the store's table `frontier`, which is the truth: it may be deleted, be
//! older than the store, be of another crawl or be broken at any time. Then it is caught up from the
//! sequence number that it tells, or built anew.
//!
//! What holds between it and the store:
//!
//! - Up to the applied sequence number no entry is missing, and none lies later than in the store.
//! - Entries may be **stale**: whoever files a subject without knowing where it was before leaves the
//!   old entry behind. Who takes an entry holds it against the store's row, and removes it here when
//!   the row says otherwise. So the store can file a million subjects without reading one of them.
//! - Changes are applied in atomic batches, each with the sequence number that it reaches. After a
//!   crash the index is as it was after one of the batches, and its number says after which.
//! - An index that was not built to its end has no number and gives nothing.
//!
//! Entries that were taken out stay in the files as marks until these are next rewritten. Readers
//! say after which place they go on, so that they do not meet them again; for the first read of all,
//! every lane keeps a low-water mark (`head.rs`).

use super::Place;
use super::head::Head;
use super::runs::{Runs, SortKey, remove_folder};
use crate::policy::State;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, FilterPolicy, PinningPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use kittiwake_model::{Key, WorldTime};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Another layout of keys and values, or other settings of the files, is another version.
const FORMAT: u8 = 1;

/// Within the folder, so that nothing else is ever deleted.
const INDEX_FOLDER: &str = "due-order";
const OLD_FOLDER: &str = "due-order.old";
const RUNS_FOLDER: &str = "due-order.runs";
const OPENING_NOTE: &str = "due-order.opening";

/// So many openings in a row may end the program, by broken files or by somebody who kills it.
const OPENINGS_MAX: usize = 2;

/// The lane of the index's own keys; those of a crawl follow.
const OWN_LANE: u32 = 0;
const FORMAT_KEY: u8 = b'f';
const SEQUENCE_KEY: u8 = b's';
const BUILDING_KEY: u8 = b'b';
const LINK_KEY: u8 = b'c';
const LANE_KEY: u8 = b'l';
const LOW_KEY: u8 = b'w';

/// The last batches, checked on opening: fjall's journal does not notice every batch that broken
/// bytes have taken out of its middle.
const LINKS: u64 = 4_096;

const MIB: u64 = 1_024 * 1_024;

/// A lane's number in one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneNumber(u32);

/// A subject's entry: when it is due, and what its policy remembers of it, so that it can be looked
/// at without the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub place: Place,
    pub state: State,
}

/// What the store has done to one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The subject is due then; `before` is where it was filed in the same lane, if whoever files it
    /// knows.
    File {
        lane: LaneNumber,
        before: Option<WorldTime>,
        entry: Entry,
    },
    /// No longer there.
    Remove { lane: LaneNumber, place: Place },
}

/// What was in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the index has to be built.
    New,
    /// All changes of the store up to this sequence number.
    UpTo(u64),
    /// Something of no use, which was thrown away: the index has to be built.
    Replaced(Replaced),
}

/// Why an index was thrown away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Replaced {
    #[error("it belongs to another crawl")]
    OtherCrawl,
    #[error("another version of the program has made it")]
    OtherFormat,
    #[error("it was not built to its end")]
    Unfinished,
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("the due order in {0} is used by another program: stop that one first")]
    InUse(PathBuf),
    #[error(
        "the due order in {folder} is broken ({reason}): delete the folder, it is made anew from the store"
    )]
    Broken { folder: PathBuf, reason: String },
    #[error("the due order in {folder} cannot be kept: {source}; make room, or let it be written")]
    Io {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("the due order is not complete: build it from the store to its end first")]
    Unfinished,
    #[error(
        "changes up to {up_to} come after those up to {applied}: give them in the store's order, or build anew"
    )]
    Backwards { applied: u64, up_to: u64 },
    #[error("no lane has the number {0}: ask for it by its name first")]
    NoSuchLane(u32),
    #[error(
        "a crawl has no more than {} lanes: use fewer hosts or query groups",
        u32::MAX
    )]
    TooManyLanes,
}

/// Removes the orders in the folders within a folder, and those folders if nothing else is in them: whatever
/// somebody has put there stays.
pub fn remove_within(folder: &Path) {
    let Ok(lanes) = std::fs::read_dir(folder) else {
        return;
    };
    for lane in lanes.flatten().map(|entry| entry.path()) {
        for own in [INDEX_FOLDER, OLD_FOLDER, RUNS_FOLDER] {
            let _ = remove_folder(&lane.join(own));
        }
        let _ = std::fs::remove_file(lane.join(OPENING_NOTE));
        let _ = std::fs::remove_dir(&lane);
    }
    let _ = std::fs::remove_dir(folder);
}

/// The open files. In an order of their own: the keyspace goes before its database.
struct Files {
    keyspace: Keyspace,
    database: Database,
}

#[derive(Debug)]
struct Lane {
    name: String,
    head: Head,
    /// The low-water mark as the index has it.
    written: Option<Place>,
}

/// How far an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Empty,
    Building,
    UpTo(u64),
}

/// The due order of a crawl on disk.
#[derive(Debug)]
pub struct DiskOrder {
    folder: PathBuf,
    identity: String,
    memory_max_bytes: u64,
    /// Missing only when it could not be made anew.
    files: Option<Files>,
    lanes: BTreeMap<LaneNumber, Lane>,
    numbers: HashMap<String, LaneNumber>,
    progress: Progress,
    /// Batches applied so far.
    batches: u64,
    runs: Option<Runs>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Files").finish_non_exhaustive()
    }
}

impl DiskOrder {
    /// Opens or makes the index in a folder. One of another crawl (`identity`, a short text that the
    /// store gives), of another format or one that cannot be read is thrown away and made anew.
    ///
    /// Buffers and caches are measured out of `memory_max_bytes`; at 512 MiB and a hundred million
    /// entries a tenth more was seen (`benches/order.rs`).
    pub fn open(
        folder: &Path,
        identity: &str,
        memory_max_bytes: u64,
    ) -> Result<(Self, Found), OrderError> {
        let mut order = Self {
            folder: folder.to_owned(),
            identity: identity.to_owned(),
            memory_max_bytes,
            files: None,
            lanes: BTreeMap::new(),
            numbers: HashMap::new(),
            progress: Progress::Empty,
            batches: 0,
            runs: None,
        };
        std::fs::create_dir_all(folder).map_err(|source| order.io(source))?;
        for leftover in [OLD_FOLDER, RUNS_FOLDER] {
            remove_folder(&folder.join(leftover)).map_err(|source| order.io(source))?;
        }
        if !folder.join(INDEX_FOLDER).exists() {
            order.make()?;
            return Ok((order, Found::New));
        }
        let found = match order.try_reading() {
            Ok(None) => match order.progress {
                Progress::UpTo(sequence) => return Ok((order, Found::UpTo(sequence))),
                Progress::Empty => return Ok((order, Found::New)),
                Progress::Building => Replaced::Unfinished,
            },
            Ok(Some(replaced)) => replaced,
            Err(OrderError::Broken { reason, .. }) => Replaced::Unreadable(reason),
            Err(error) => return Err(error),
        };
        order.lanes.clear();
        order.numbers.clear();
        order.make_anew()?;
        Ok((order, Found::Replaced(found)))
    }

    /// Applies changes of the store, in its order, in one atomic batch together with the sequence
    /// number that they reach. The number may stay the same for what is only tidied up.
    pub fn apply(&mut self, changes: &[Change], up_to: u64) -> Result<(), OrderError> {
        let applied = self.sequence().ok_or(OrderError::Unfinished)?;
        if up_to < applied {
            return Err(OrderError::Backwards { applied, up_to });
        }
        let steps = self.steps(changes)?;
        let committed = self.commit(&steps, up_to);
        if committed.is_err() {
            // What was noted of the lanes' beginnings did not happen.
            for lane in self.lanes.values_mut() {
                lane.head = Head::default();
            }
            return committed;
        }
        self.progress = Progress::UpTo(up_to);
        self.batches += 1;
        self.move_marks_on(&steps)
    }

    /// The next entries of a lane after a place, in order.
    pub fn after(
        &self,
        lane: LaneNumber,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Entry>, OrderError> {
        self.sequence().ok_or(OrderError::Unfinished)?;
        let head = &self.lane_of(lane)?.head;
        let mut from = after.map_or(Bound::Unbounded, Bound::Excluded);
        if let Some(low) = head.low()
            && after.is_none_or(|after| after < low)
        {
            from = Bound::Included(low);
        }
        let mut entries = Vec::with_capacity(limit.min(4_096));
        if let Some((last_early, clear_to)) = head.gap()
            && after.is_none_or(|after| after < clear_to)
        {
            if after.is_none_or(|after| after < last_early) {
                self.read(lane, from, Bound::Included(last_early), limit, &mut entries)?;
            }
            from = Bound::Included(clear_to);
        }
        self.read(lane, from, Bound::Unbounded, limit, &mut entries)?;
        Ok(entries)
    }

    /// What is applied is on disk, whatever happens to the machine.
    pub fn persist(&self) -> Result<(), OrderError> {
        let files = self.files()?;
        self.guard(|| files.database.persist(PersistMode::SyncAll))
    }

    /// Throws away all entries, and waits for those of the store. Lanes keep their numbers.
    pub fn begin_building(&mut self) -> Result<(), OrderError> {
        if self.progress != Progress::Empty {
            self.make_anew()?;
        }
        let files = self.files()?;
        self.guard(|| files.keyspace.insert(own_key(BUILDING_KEY, &[]), []))?;
        self.progress = Progress::Building;
        let runs = Runs::new(
            &self.folder.join(RUNS_FOLDER),
            (self.memory_max_bytes / 4) as usize,
        );
        self.runs = Some(runs.map_err(|source| self.io(source))?);
        Ok(())
    }

    /// Takes entries of the store, in any order. They can be read only after [`Self::finish`].
    pub fn build(
        &mut self,
        lane: LaneNumber,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), OrderError> {
        self.lane_of(lane)?;
        let mut runs = self.runs.take().ok_or(OrderError::Unfinished)?;
        for Entry { place, state } in entries {
            runs.push(sort_key(lane, place), state)
                .map_err(|source| self.io(source))?;
        }
        self.runs = Some(runs);
        Ok(())
    }

    /// Ends the building: the index has all entries of the store as of this sequence number.
    pub fn finish(&mut self, up_to: u64) -> Result<(), OrderError> {
        let runs = self.runs.take().ok_or(OrderError::Unfinished)?;
        let files = self.files()?;
        self.guard(|| {
            let mut ingestion = files.keyspace.start_ingestion()?;
            runs.merge(|key, state| ingestion.write(key.as_slice(), state.bytes()))?;
            ingestion.finish()?;
            let mut batch = files.database.batch();
            batch.remove(&files.keyspace, own_key(BUILDING_KEY, &[]));
            for (number, lane) in &self.lanes {
                batch.insert(&files.keyspace, lane_key(*number), lane.name.as_bytes());
            }
            put_sequence(&mut batch, &files.keyspace, up_to, self.batches + 1);
            batch.commit()?;
            files.database.persist(PersistMode::SyncAll)
        })?;
        self.progress = Progress::UpTo(up_to);
        self.batches += 1;
        Ok(())
    }

    /// The number of a lane, for example of `mastodon/host/statuses`. It is given when the lane is
    /// first seen; from the end of the building on it is kept as long as the index.
    pub fn lane(&mut self, name: &str) -> Result<LaneNumber, OrderError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let last = self.lanes.last_key_value();
        let last = last.map_or(OWN_LANE, |(number, _)| number.0);
        let number = LaneNumber(last.checked_add(1).ok_or(OrderError::TooManyLanes)?);
        if let Some(sequence) = self.sequence() {
            // With a link, as every batch: were it lost unnoticed, another lane would get its number.
            let files = self.files()?;
            let mut batch = files.database.batch();
            batch.insert(&files.keyspace, lane_key(number), name.as_bytes());
            put_sequence(&mut batch, &files.keyspace, sequence, self.batches + 1);
            self.guard(|| batch.commit())?;
            self.batches += 1;
        }
        self.add_lane(number, name);
        Ok(number)
    }

    /// Every lane with its name.
    pub fn lanes(&self) -> impl Iterator<Item = (LaneNumber, &str)> {
        let lanes = self.lanes.iter();
        lanes.map(|(number, lane)| (*number, lane.name.as_str()))
    }

    /// The sequence number of the store up to which changes are applied; none while it is not built.
    pub fn sequence(&self) -> Option<u64> {
        match self.progress {
            Progress::UpTo(sequence) => Some(sequence),
            Progress::Empty | Progress::Building => None,
        }
    }

    /// How many entries there are at most, about: those that were taken out count until the files
    /// are next rewritten.
    pub fn entries_at_most(&self) -> usize {
        let files = self.files.as_ref();
        files.map_or(0, |files| files.keyspace.approximate_len())
    }

    /// Bytes on disk, about.
    pub fn disk_bytes(&self) -> Result<u64, OrderError> {
        let files = self.files()?;
        self.guard(|| files.database.disk_space())
    }
}

/// Changes as keys to be written or removed, in order and once each.
type Steps<'a> = Vec<(SortKey, Option<&'a State>)>;

impl DiskOrder {
    fn steps<'a>(&mut self, changes: &'a [Change]) -> Result<Steps<'a>, OrderError> {
        for change in changes {
            let (Change::File { lane, .. } | Change::Remove { lane, .. }) = change;
            self.lane_of(*lane)?;
        }
        let mut steps: Steps<'a> = Vec::with_capacity(changes.len() * 2);
        for change in changes {
            match change {
                Change::File {
                    lane,
                    before,
                    entry,
                } => {
                    if let Some(before) = before {
                        steps.push((sort_key(*lane, (*before, entry.place.1)), None));
                    }
                    steps.push((sort_key(*lane, entry.place), Some(&entry.state)));
                }
                Change::Remove { lane, place } => steps.push((sort_key(*lane, *place), None)),
            }
        }
        // Stable: of several steps with one key the last one counts, and it comes first here.
        steps.reverse();
        steps.sort_by_key(|(key, _)| *key);
        steps.dedup_by_key(|(key, _)| *key);
        for (key, state) in &steps {
            let (lane, place) = split_key(key);
            if let Some(lane) = self.lanes.get_mut(&lane) {
                match state {
                    Some(_) => lane.head.filed(place),
                    None => lane.head.removed(place),
                }
            }
        }
        Ok(steps)
    }

    fn commit(&mut self, steps: &Steps<'_>, up_to: u64) -> Result<(), OrderError> {
        let files = self.files()?;
        let keyspace = &files.keyspace;
        // Handed to the system with each batch: a killed process loses none, a power cut may.
        let mut batch = OwnedWriteBatch::with_capacity(files.database.clone(), steps.len() + 8)
            .durability(Some(PersistMode::Buffer));
        for (key, state) in steps {
            match state {
                Some(state) => batch.insert(keyspace, key.as_slice(), state.bytes()),
                None => batch.remove(keyspace, key.as_slice()),
            }
        }
        let touched = lanes_of(steps);
        for number in &touched {
            let lane = self.lane_of(*number)?;
            let low = lane.head.low();
            match low {
                _ if low == lane.written => {}
                Some(place) => batch.insert(keyspace, low_key(*number), place_bytes(place)),
                None => batch.remove(keyspace, low_key(*number)),
            }
        }
        put_sequence(&mut batch, keyspace, up_to, self.batches + 1);
        self.guard(|| batch.commit())?;
        for number in touched {
            if let Some(lane) = self.lanes.get_mut(&number) {
                lane.written = lane.head.low();
            }
        }
        Ok(())
    }

    /// Looks where lanes begin out of which much was taken. The marks are kept with their next batch.
    fn move_marks_on(&mut self, steps: &Steps<'_>) -> Result<(), OrderError> {
        for number in lanes_of(steps) {
            let Some((from, to)) = self.lane_of(number)?.head.look() else {
                continue;
            };
            let mut first = Vec::new();
            let from = from.map_or(Bound::Unbounded, Bound::Included);
            if from_is_up_to(from, to) {
                self.read(number, from, Bound::Included(to), 1, &mut first)?;
            }
            if let Some(lane) = self.lanes.get_mut(&number) {
                lane.head.found(first.first().map(|entry| entry.place));
            }
        }
        Ok(())
    }

    /// Reads entries of a lane until there are `limit` of them.
    fn read(
        &self,
        lane: LaneNumber,
        from: Bound<Place>,
        to: Bound<Place>,
        limit: usize,
        entries: &mut Vec<Entry>,
    ) -> Result<(), OrderError> {
        let first = (WorldTime(i64::MIN), Key(i64::MIN));
        let last = (WorldTime(i64::MAX), Key(i64::MAX));
        let from = match from {
            Bound::Unbounded => Bound::Included(first),
            bound => bound,
        };
        let to = match to {
            Bound::Unbounded => Bound::Included(last),
            bound => bound,
        };
        let range = (
            from.map(|place| sort_key(lane, place)),
            to.map(|place| sort_key(lane, place)),
        );
        let files = self.files()?;
        let rows = limit.saturating_sub(entries.len());
        if rows == 0 || from == Bound::Excluded(last) {
            return Ok(());
        }
        let read = self.guard(|| {
            for row in files.keyspace.range(range).take(rows) {
                let (key, value) = row.into_inner()?;
                let Ok(key) = SortKey::try_from(&*key) else {
                    return Ok(Err("a key has another length"));
                };
                let Ok(state) = State::try_from(&*value) else {
                    return Ok(Err("a state is too long"));
                };
                let (_, place) = split_key(&key);
                entries.push(Entry { place, state });
            }
            Ok(Ok(()))
        })?;
        read.map_err(|reason| self.broken(reason))
    }

    fn files(&self) -> Result<&Files, OrderError> {
        self.files.as_ref().ok_or(OrderError::Unfinished)
    }

    fn lane_of(&self, number: LaneNumber) -> Result<&Lane, OrderError> {
        let lane = self.lanes.get(&number);
        lane.ok_or(OrderError::NoSuchLane(number.0))
    }

    fn add_lane(&mut self, number: LaneNumber, name: &str) {
        self.numbers.insert(name.to_owned(), number);
        let lane = Lane {
            name: name.to_owned(),
            head: Head::default(),
            written: None,
        };
        self.lanes.insert(number, lane);
    }

    /// Puts what is there aside, deletes it, and makes an empty index.
    fn make_anew(&mut self) -> Result<(), OrderError> {
        self.close();
        let (current, old) = (self.folder.join(INDEX_FOLDER), self.folder.join(OLD_FOLDER));
        // Deleting is not atomic, renaming is: half of an index must not be taken for one.
        let renamed = remove_folder(&old).and_then(|()| std::fs::rename(&current, &old));
        renamed
            .and_then(|()| remove_folder(&old))
            .map_err(|source| self.io(source))?;
        // What it was about is gone.
        let _ = std::fs::remove_file(self.folder.join(OPENING_NOTE));
        self.make()
    }

    fn make(&mut self) -> Result<(), OrderError> {
        let files = self.open_files()?;
        let mut format = vec![FORMAT];
        format.extend(self.identity.as_bytes());
        self.guard(|| files.keyspace.insert(own_key(FORMAT_KEY, &[]), format))?;
        self.files = Some(files);
        self.progress = Progress::Empty;
        self.batches = 0;
        for lane in self.lanes.values_mut() {
            lane.head = Head::default();
            lane.written = None;
        }
        Ok(())
    }

    fn open_files(&self) -> Result<Files, OrderError> {
        let path = self.folder.join(INDEX_FOLDER);
        let memory_bytes = self.memory_max_bytes;
        self.guard(|| {
            let database = Database::builder(&path)
                .cache_size(memory_bytes / 4)
                .worker_threads(WORKERS)
                .max_cached_files(Some(256))
                .open()?;
            let keyspace = database.keyspace("order", || keyspace_options(memory_bytes))?;
            Ok(Files { keyspace, database })
        })
    }

    /// Opens what is there. Broken files may end the whole program in here: fjall 3.1 panics on some
    /// of them, and once more while it cleans up, which nothing can catch. A note outlives that, so
    /// that the same files do not end the program forever.
    fn try_reading(&mut self) -> Result<Option<Replaced>, OrderError> {
        let note = self.folder.join(OPENING_NOTE);
        let tried = std::fs::read(&note).map_or(0, |tried| tried.len());
        if tried >= OPENINGS_MAX {
            return Err(self.broken("the program has ended while opening it, more than once"));
        }
        std::fs::write(&note, vec![b'.'; tried + 1]).map_err(|source| self.io(source))?;
        let read = match self.open_files() {
            Ok(files) => self.read_own(files),
            Err(error) => Err(error),
        };
        std::fs::remove_file(&note).map_err(|source| self.io(source))?;
        read
    }

    /// Reads what the index says of itself, or why it is of no use.
    fn read_own(&mut self, files: Files) -> Result<Option<Replaced>, OrderError> {
        let own = self.guard(|| {
            let rows = files.keyspace.prefix(OWN_LANE.to_be_bytes());
            let rows = rows.map(|row| {
                let (key, value) = row.into_inner()?;
                Ok((key.to_vec(), value.to_vec()))
            });
            rows.collect::<Result<Vec<_>, fjall::Error>>()
        })?;
        self.files = Some(files);
        self.take_own(own.into_iter().collect())
            .map_err(|reason| self.broken(reason))
    }

    fn take_own(
        &mut self,
        mut own: BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<Option<Replaced>, &'static str> {
        const NONSENSE: &str = "what it says of itself makes no sense";
        let Some(format) = own.remove(&own_key(FORMAT_KEY, &[])) else {
            return Ok(Some(Replaced::Unfinished));
        };
        let (version, identity) = format.split_first().ok_or(NONSENSE)?;
        if *version != FORMAT {
            return Ok(Some(Replaced::OtherFormat));
        }
        if identity != self.identity.as_bytes() {
            return Ok(Some(Replaced::OtherCrawl));
        }
        if own.contains_key(&own_key(BUILDING_KEY, &[])) {
            return Ok(Some(Replaced::Unfinished));
        }
        if let Some(sequence) = own.remove(&own_key(SEQUENCE_KEY, &[])) {
            let (sequence, batches) = read_sequence(&sequence).ok_or(NONSENSE)?;
            let links = own.iter().filter(|(key, _)| key.get(4) == Some(&LINK_KEY));
            if !are_links_whole(links, batches) {
                return Err("some of the last changes are missing");
            }
            self.progress = Progress::UpTo(sequence);
            self.batches = batches;
        }
        for (key, value) in &own {
            let (kind, number) = key.get(4).zip(key.get(5..)).ok_or(NONSENSE)?;
            match *kind {
                LANE_KEY => {
                    let number = lane_number(number).ok_or(NONSENSE)?;
                    let name = std::str::from_utf8(value).map_err(|_| NONSENSE)?;
                    self.add_lane(number, name);
                }
                LOW_KEY => {
                    // In the order of keys lanes come before their marks.
                    let number = lane_number(number).ok_or(NONSENSE)?;
                    let place = read_place(value).ok_or(NONSENSE)?;
                    let lane = self.lanes.get_mut(&number).ok_or(NONSENSE)?;
                    lane.head = Head::kept(place);
                    lane.written = Some(place);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Runs what asks fjall. On broken files it may panic where it should fail, and a derived index
    /// is no reason to end the crawl.
    fn guard<T>(&self, work: impl FnOnce() -> Result<T, fjall::Error>) -> Result<T, OrderError> {
        let error = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(_) => return Err(self.broken("the library that reads it has given up")),
        };
        if matches!(error, fjall::Error::Locked) {
            return Err(OrderError::InUse(self.folder.clone()));
        }
        match input_output(error) {
            Ok(source) => Err(self.io(source)),
            Err(error) => Err(self.broken(&error.to_string())),
        }
    }

    fn io(&self, source: std::io::Error) -> OrderError {
        OrderError::Io {
            folder: self.folder.clone(),
            source,
        }
    }

    fn broken(&self, reason: &str) -> OrderError {
        OrderError::Broken {
            folder: self.folder.clone(),
            reason: reason.to_owned(),
        }
    }

    fn close(&mut self) {
        self.runs = None;
        let files = self.files.take();
        // A thread of fjall that broken files have ended makes closing panic, too.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(files)));
    }
}

impl Drop for DiskOrder {
    fn drop(&mut self) {
        self.close();
    }
}

/// One writes what is in memory to files, the others merge files. With fewer than three, the first
/// spins while the second is at work (fjall 3.1).
const WORKERS: usize = 3;

/// Entries are read in order and never looked up, so that there are no filters, and blocks are large.
/// Files are merged later than by default: that takes a sixth less of the processor.
fn keyspace_options(memory_bytes: u64) -> KeyspaceCreateOptions {
    let merging = Leveled::default().with_l0_threshold(8);
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(merging))
        .max_memtable_size((memory_bytes / 8).clamp(MIB, 64 * MIB))
        .filter_policy(FilterPolicy::disabled())
        .data_block_size_policy(BlockSizePolicy::all(16 * 1_024))
        .index_block_pinning_policy(PinningPolicy::all(false))
}

/// An error of the machine rather than of the files' contents: throwing them away would not help.
fn input_output(error: fjall::Error) -> Result<std::io::Error, fjall::Error> {
    use std::io::ErrorKind;
    let is_of_machine = |error: &std::io::Error| {
        matches!(
            error.kind(),
            ErrorKind::PermissionDenied
                | ErrorKind::StorageFull
                | ErrorKind::QuotaExceeded
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::OutOfMemory
        ) || error.raw_os_error() == Some(TOO_MANY_OPEN_FILES)
    };
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))
            if is_of_machine(&error) =>
        {
            Ok(error)
        }
        error => Err(error),
    }
}

const TOO_MANY_OPEN_FILES: i32 = 24;

fn put_sequence(batch: &mut OwnedWriteBatch, keyspace: &Keyspace, sequence: u64, batches: u64) {
    let mut value = sequence.to_be_bytes().to_vec();
    value.extend(batches.to_be_bytes());
    batch.insert(keyspace, own_key(SEQUENCE_KEY, &[]), value);
    let slot = ((batches % LINKS) as u16).to_be_bytes();
    batch.insert(keyspace, own_key(LINK_KEY, &slot), batches.to_be_bytes());
}

fn read_sequence(value: &[u8]) -> Option<(u64, u64)> {
    let (sequence, batches) = value.split_first_chunk::<8>()?;
    let batches = batches.try_into().ok()?;
    Some((u64::from_be_bytes(*sequence), u64::from_be_bytes(batches)))
}

/// Whether every one of the last batches has left its link.
fn are_links_whole<'a>(
    links: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
    batches: u64,
) -> bool {
    let oldest = batches.saturating_sub(LINKS - 1).max(1);
    let mut count = 0;
    for (key, value) in links {
        let Some(link) = value.as_slice().try_into().ok().map(u64::from_be_bytes) else {
            return false;
        };
        let slot = ((link % LINKS) as u16).to_be_bytes();
        if !(oldest..=batches).contains(&link) || key.get(5..) != Some(slot.as_slice()) {
            return false;
        }
        count += 1;
    }
    count == (oldest..=batches).count()
}

/// The lanes of steps, which are in order.
fn lanes_of(steps: &Steps<'_>) -> Vec<LaneNumber> {
    let mut lanes: Vec<_> = steps.iter().map(|(key, _)| split_key(key).0).collect();
    lanes.dedup();
    lanes
}

fn from_is_up_to(from: Bound<Place>, to: Place) -> bool {
    match from {
        Bound::Unbounded => true,
        Bound::Included(from) => from <= to,
        Bound::Excluded(from) => from < to,
    }
}

/// Numbers with a sign, as bytes that sort like them.
const fn sortable(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

const fn sorted(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}

fn place_bytes((due, subject): Place) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&sortable(due.micros()));
    bytes[8..].copy_from_slice(&sortable(subject.0));
    bytes
}

fn read_place(bytes: &[u8]) -> Option<Place> {
    let (due, subject) = bytes.split_first_chunk::<8>()?;
    let subject = subject.try_into().ok()?;
    Some((WorldTime(sorted(*due)), Key(sorted(subject))))
}

fn sort_key(lane: LaneNumber, place: Place) -> SortKey {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&lane.0.to_be_bytes());
    key[4..].copy_from_slice(&place_bytes(place));
    key
}

fn split_key(key: &SortKey) -> (LaneNumber, Place) {
    let [a, b, c, d, place @ ..] = *key;
    let (mut due, mut subject) = ([0; 8], [0; 8]);
    due.copy_from_slice(&place[..8]);
    subject.copy_from_slice(&place[8..]);
    let lane = LaneNumber(u32::from_be_bytes([a, b, c, d]));
    (lane, (WorldTime(sorted(due)), Key(sorted(subject))))
}

fn own_key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = OWN_LANE.to_be_bytes().to_vec();
    key.push(kind);
    key.extend(rest);
    key
}

fn lane_key(number: LaneNumber) -> Vec<u8> {
    own_key(LANE_KEY, &number.0.to_be_bytes())
}

fn low_key(number: LaneNumber) -> Vec<u8> {
    own_key(LOW_KEY, &number.0.to_be_bytes())
}

fn lane_number(bytes: &[u8]) -> Option<LaneNumber> {
    let number = u32::from_be_bytes(bytes.try_into().ok()?);
    (number != OWN_LANE).then_some(LaneNumber(number))
}

#[cfg(test)]
mod tests;
