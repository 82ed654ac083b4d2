//! How one network speaks: definition → request; bytes → objects.
//!
//! Knows: the definition format, paths and expressions, paging, error signs, limits as a network
//! declares and reports them. Pure: no sockets, no files, no clock; whatever time is needed is
//! passed in.
//! Does not know: how bytes travel, what is stored, what is visited next.
