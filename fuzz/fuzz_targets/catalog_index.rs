//! Any bytes as the index of a catalog: it is rejected, or each piece is checked before it is used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit_serve::index::{Index, Storage};

fuzz_target!(|data: &[u8]| {
    let Ok(index) = Index::open(Storage::Memory(data.to_vec())) else {
        return;
    };
    for slot in index.packages() {
        let _ = index.answer(&slot.name);
        let Ok(section) = index.section(slot) else { continue };
        let _ = index.display(&section);
        for bundle in &section.bundles {
            let _ = index.piece(bundle.common);
            let _ = index.piece(bundle.manifests);
        }
    }
    for block in 0..index.blocks().min(1000) {
        let _ = index.block(block);
    }
    for block in 0..index.blob_blocks().min(1000) {
        let _ = index.blobs(block);
    }
});
