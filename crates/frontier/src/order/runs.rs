//! Sorts more entries than memory holds: sorted runs in files, merged when all of them are there.

use crate::policy::State;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// An entry's place in the whole order, as bytes that sort like it.
pub(super) type SortKey = [u8; 20];

/// Bytes that one entry takes while it waits to be sorted.
const RECORD_BYTES: usize = size_of::<Record>();

/// Files that are read at the same time.
const RUNS_MAX: usize = 200;

const BUFFER_BYTES: usize = 128 * 1_024;

type Record = (SortKey, State);

/// Entries on their way to being sorted. Its files are gone when it is.
#[derive(Debug)]
pub(super) struct Runs {
    folder: PathBuf,
    waiting: Vec<Record>,
    waiting_max: usize,
    files: Vec<PathBuf>,
    named: usize,
}

impl Runs {
    pub(super) fn new(folder: &Path, memory_max_bytes: usize) -> io::Result<Self> {
        remove_folder(folder)?;
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            waiting: Vec::new(),
            waiting_max: (memory_max_bytes / RECORD_BYTES).max(1),
            files: Vec::new(),
            named: 0,
        })
    }

    pub(super) fn push(&mut self, key: SortKey, state: State) -> io::Result<()> {
        if self.waiting.len() >= self.waiting_max {
            self.write_waiting()?;
        }
        if self.waiting.capacity() == 0 {
            // At once: growing by doubling would hold one and a half times as much.
            self.waiting.reserve_exact(self.waiting_max);
        }
        self.waiting.push((key, state));
        Ok(())
    }

    /// Gives every entry in order, one for each key.
    pub(super) fn merge<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(SortKey, &State) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_waiting()?;
        self.waiting = Vec::new();
        merge_files(&self.files, &mut take)
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if self.files.len() >= RUNS_MAX {
            self.join_files()?;
        }
        self.waiting.sort_unstable_by_key(|(key, _)| *key);
        let path = self.next_path();
        let mut file = create(&path)?;
        for (key, state) in self.waiting.drain(..) {
            write_record(&mut file, key, &state)?;
        }
        file.flush()?;
        self.files.push(path);
        Ok(())
    }

    /// Makes one file out of all, so that the number of open files is bounded.
    fn join_files(&mut self) -> io::Result<()> {
        let path = self.next_path();
        let mut file = create(&path)?;
        merge_files(&self.files, &mut |key, state| {
            write_record(&mut file, key, state)
        })?;
        file.flush()?;
        for joined in self.files.drain(..) {
            std::fs::remove_file(joined)?;
        }
        self.files.push(path);
        Ok(())
    }

    fn next_path(&mut self) -> PathBuf {
        self.named += 1;
        self.folder.join(self.named.to_string())
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // What stays is removed by the next building.
        let _ = remove_folder(&self.folder);
    }
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?))
}

fn write_record(file: &mut impl Write, key: SortKey, state: &State) -> io::Result<()> {
    file.write_all(&key)?;
    file.write_all(&[state.bytes().len() as u8])?;
    file.write_all(state.bytes())
}

fn read_record(file: &mut BufReader<File>) -> io::Result<Option<Record>> {
    let mut key = [0; 20];
    let taken = file.read(&mut key)?;
    if taken == 0 {
        return Ok(None);
    }
    file.read_exact(&mut key[taken..])?;
    let mut bytes = [0; 256];
    let mut length = [0];
    file.read_exact(&mut length)?;
    let bytes = &mut bytes[..usize::from(length[0])];
    file.read_exact(bytes)?;
    let state = State::try_from(&*bytes).map_err(io::Error::other)?;
    Ok(Some((key, state)))
}

/// The next record of one file; the heap gives the least key first.
struct Next {
    key: SortKey,
    state: State,
    file: BufReader<File>,
}

impl Next {
    fn of(mut file: BufReader<File>) -> io::Result<Option<Self>> {
        let record = read_record(&mut file)?;
        Ok(record.map(|(key, state)| Self { key, state, file }))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

fn merge_files<E: From<io::Error>>(
    paths: &[PathBuf],
    take: &mut impl FnMut(SortKey, &State) -> Result<(), E>,
) -> Result<(), E> {
    let mut heap = BinaryHeap::with_capacity(paths.len());
    for path in paths {
        let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
        heap.extend(Next::of(file)?);
    }
    let mut last = None;
    while let Some(mut next) = heap.peek_mut() {
        if last != Some(next.key) {
            last = Some(next.key);
            take(next.key, &next.state)?;
        }
        match read_record(&mut next.file)? {
            Some((key, state)) => {
                next.key = key;
                next.state = state;
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(next);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn more_runs_than_may_be_open_come_out_sorted_and_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("runs");
        let mut runs = Runs::new(&place, 3 * RECORD_BYTES).unwrap();
        let mut random = Random::new(4);
        let mut expected = std::collections::BTreeMap::new();
        for _ in 0..2_000 {
            let number = random.below(1_500) as u16;
            let mut key = [0; 20];
            key[..2].copy_from_slice(&number.to_be_bytes());
            let state = State::try_from(&[7; 63][..usize::from(number % 64)]).unwrap();
            expected.insert(key, state.clone());
            runs.push(key, state).unwrap();
        }
        let mut sorted = Vec::new();
        runs.merge(|key, state| {
            sorted.push((key, state.clone()));
            Ok::<_, io::Error>(())
        })
        .unwrap();
        assert_eq!(sorted, expected.into_iter().collect::<Vec<_>>());
        assert!(!place.exists());
    }
}
