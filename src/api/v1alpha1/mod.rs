//! `cache.example.com/v1alpha1`.
mod memcached;
mod resources;
mod status;

pub use memcached::{
    DEFAULT_CONTAINER_PORT, DEFAULT_MAX_CONNECTIONS, DEFAULT_MEMORY_LIMIT_MEGABYTES, DEFAULT_SIZE, FINALIZER,
    Memcached, MemcachedSpec,
};
pub use resources::Resources;
pub use status::{AVAILABLE, DEGRADED, MemcachedStatus, PROGRESSING, Phase, READY};
