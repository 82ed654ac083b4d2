//! The first bytes of a file that SQLite may have open in this very process.
//!
//! On POSIX a process loses its locks on a file as soon as it closes the file anywhere, whoever holds them. Were
//! a file that is being crawled into opened and closed to look at its first bytes, SQLite's own lock would be gone:
//! the next process that looks into the file would take itself for the last one, and throw away the
//! write-ahead log that the crawl still writes to. So what was opened here stays open.

use std::fs::File;
use std::io;
use std::path::Path;

/// A file as it lies there, without the first bytes if it is no regular one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub is_file: bool,
    pub bytes: Vec<u8>,
}

/// At most so many of the first bytes.
pub(super) fn read(path: &Path, length: usize) -> io::Result<Head> {
    // Opening a pipe would wait for somebody at its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(Head {
            is_file: false,
            bytes: Vec::new(),
        });
    }
    let bytes = held::with_file(path, |file| first_bytes(file, length))?;
    Ok(Head {
        is_file: true,
        bytes,
    })
}

#[cfg(unix)]
fn first_bytes(file: &File, length: usize) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let (mut bytes, mut filled) = (vec![0; length], 0);
    while filled < length {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(not(unix))]
fn first_bytes(file: &File, length: usize) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    file.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
mod held {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::{Mutex, PoisonError};

    /// One for each file that was looked at, which are few.
    static HELD: Mutex<Vec<(Mark, File)>> = Mutex::new(Vec::new());

    /// Device and number.
    type Mark = (u64, u64);

    fn mark(metadata: &Metadata) -> Mark {
        (metadata.dev(), metadata.ino())
    }

    /// Lets somebody look at the file, which is not closed afterwards.
    pub(super) fn with_file<T>(
        path: &Path,
        look: impl FnOnce(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else can open what was deleted.
        held.retain(|(_, file)| file.metadata().is_ok_and(|found| found.nlink() > 0));
        let wanted = mark(&std::fs::metadata(path)?);
        if let Some((_, file)) = held.iter().find(|(mark, _)| *mark == wanted) {
            return look(file);
        }
        let file = File::open(path)?;
        let looked = look(&file);
        held.push((mark(&file.metadata()?), file));
        looked
    }
}

#[cfg(not(unix))]
mod held {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Lets somebody look at the file: closing it costs nobody a lock.
    pub(super) fn with_file<T>(
        path: &Path,
        look: impl FnOnce(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        look(&File::open(path)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_those_that_are_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!read(folder.path(), 4).unwrap().is_file);
        for bytes in [&b""[..], b"ab", b"abcdef"] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, 4).unwrap().bytes, &bytes[..bytes.len().min(4)]);
        }
        // Another file in its place.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "other").unwrap();
        assert_eq!(read(&path, 5).unwrap().bytes, b"other");
    }

    /// Whoever looks into a file that this process has open leaves its locks where they are.
    #[cfg(target_os = "linux")]
    #[test]
    fn looking_costs_nobody_a_lock() {
        use crate::{Location, OpenMode, SqliteStore, browse::Browser};
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.db");
        let store = SqliteStore::open(&path, OpenMode::Crawl).unwrap();
        let number = std::fs::metadata(&path).unwrap().ino();
        let ours = format!(" {} ", std::process::id());
        let locks = || {
            let all = std::fs::read_to_string("/proc/locks").unwrap();
            let of_file = all
                .lines()
                .filter(|line| line.contains(&format!(":{number} ")));
            of_file.filter(|line| line.contains(&ours)).count()
        };
        let before = locks();
        assert!(before > 0, "a file that is open is locked");
        let browser = Browser::open(&Location::File(path.clone()), 1).unwrap();
        drop(browser);
        super::super::open::check_file(&path, OpenMode::Read).unwrap();
        assert_eq!(locks(), before);
        drop(store);
    }
}
