//! Answers the calls of the registry API from an index.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use olmkit_front::Handle;
use prost::Message as _;
use prost::bytes::BytesMut;
use tonic::{Request, Response, Status};

use super::api;
use super::api::experimental_registry_server::ExperimentalRegistry;
use super::api::registry_server::Registry;
use super::current::Current;
use super::index::Index;
use super::index::format::{
    ChannelSection, EntrySection, Extent, ListItem, ManifestsPiece, PackageDisplay, PackageSection,
};
use super::lookup::{damaged, decode, name_of, unknown};
use super::providers::{ApiQuery, channel_entry, providers};
use super::record;
use olmkit_go::strconv::quote;

/// The services, on the current index. A call keeps the index with which it began.
#[derive(Clone)]
pub struct Service {
    current: Current,
}

impl Service {
    /// Answers from `current`.
    pub fn new(current: Current) -> Self {
        Service { current }
    }

    fn index(&self) -> Result<Arc<Index>, Status> {
        self.current
            .get()
            .ok_or_else(|| Status::unavailable("the catalog is still being read; try again"))
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Sends the items one after the other. The connection counts their memory until they are sent.
fn stream<T: prost::Message + 'static>(items: Vec<T>, connection: Option<&Handle>) -> Response<Answers<T>> {
    let reserved = connection.map(|connection| connection.reserve(size_of_items(&items)));
    let items = items.into_iter().map(move |item| {
        let _ = &reserved;
        Ok(item)
    });
    Response::new(Box::pin(futures::stream::iter(items)))
}

/// Approximate memory of messages in bytes.
fn size_of_items<T: prost::Message>(items: &[T]) -> usize {
    items.iter().map(|item| item.encoded_len() + size_of::<T>()).sum()
}

/// The connection of a request.
fn connection<T>(request: &Request<T>) -> Option<Handle> {
    request.extensions().get::<Handle>().cloned()
}

fn package(index: &Index, name: &str) -> Result<PackageSection, Status> {
    index
        .package(name)
        .map_err(|error| damaged(&error))?
        .ok_or_else(|| no_package(name))
}

fn no_package(name: &str) -> Status {
    unknown(format!("package {} not found", quote(name)))
}

/// Puts CSV and manifests into a bundle's message.
fn add_manifests(
    index: &Index,
    message: &mut api::Bundle,
    extent: Extent,
    package: impl FnOnce() -> Result<PackageDisplay, Status>,
) -> Result<(), Status> {
    let piece = index.piece(extent).map_err(|error| damaged(&error))?;
    let piece = ManifestsPiece::decode(piece).map_err(|_| Status::data_loss("the index is damaged"))?;
    // Only a generated CSV needs the package's display data.
    let package = piece
        .metadata
        .as_ref()
        .map(|_| package())
        .transpose()?
        .unwrap_or_default();
    let manifests = record::manifests(piece, &message.csv_name, &message.version, &package).map_err(unknown)?;
    message.csv_json = manifests.csv_json;
    message.object = manifests.object;
    Ok(())
}

fn display(index: &Index, package: &PackageSection) -> Result<PackageDisplay, Status> {
    index.display(package).map_err(|error| damaged(&error))
}

fn channel<'p>(package: &'p PackageSection, name: &str) -> Result<&'p ChannelSection, Status> {
    package
        .channels
        .iter()
        .find(|channel| channel.name == name)
        .ok_or_else(|| {
            unknown(format!(
                "package {}, channel {} not found",
                quote(&package.name),
                quote(name)
            ))
        })
}

/// The whole message of a channel entry, as the Get calls return it.
fn bundle(
    index: &Index,
    package: &PackageSection,
    channel: &ChannelSection,
    entry: &EntrySection,
) -> Result<api::Bundle, Status> {
    let slot = package
        .bundles
        .get(entry.bundle as usize)
        .ok_or_else(|| Status::data_loss("the index is damaged"))?;
    let mut message = decode(index, slot.common)?;
    add_manifests(index, &mut message, slot.manifests, || display(index, package))?;
    let entry = record::entry(&channel.name, entry, false);
    message.channel_name = entry.channel_name;
    message.skip_range = entry.skip_range;
    Ok(message)
}

#[tonic::async_trait]
impl Registry for Service {
    type ListPackagesStream = Answers<api::PackageName>;
    type GetChannelEntriesThatReplaceStream = Answers<api::ChannelEntry>;
    type GetChannelEntriesThatProvideStream = Answers<api::ChannelEntry>;
    type GetLatestChannelEntriesThatProvideStream = Answers<api::ChannelEntry>;
    type ListBundlesStream = Answers<api::Bundle>;

    async fn list_packages(
        &self,
        _: Request<api::ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        let index = self.index()?;
        let names = (0..index.packages().len()).filter_map(move |at| {
            let name = index.packages().get(at)?.name.clone();
            Some(Ok(api::PackageName { name }))
        });
        Ok(Response::new(Box::pin(futures::stream::iter(names))))
    }

    async fn get_package(&self, request: Request<api::GetPackageRequest>) -> Result<Response<api::Package>, Status> {
        let index = self.index()?;
        let name = request.into_inner().name;
        let answer = index.answer(&name).map_err(|error| damaged(&error))?;
        Ok(Response::new(answer.ok_or_else(|| no_package(&name))?))
    }

    async fn get_bundle(&self, request: Request<api::GetBundleRequest>) -> Result<Response<api::Bundle>, Status> {
        let index = self.index()?;
        let request = request.into_inner();
        let package = package(&index, &request.pkg_name)?;
        let channel = channel(&package, &request.channel_name)?;
        let entry = channel
            .entries
            .iter()
            .find(|entry| name_of(&package, entry) == request.csv_name)
            .ok_or_else(|| {
                unknown(format!(
                    "package {}, channel {}, bundle {} not found",
                    quote(&request.pkg_name),
                    quote(&request.channel_name),
                    quote(&request.csv_name)
                ))
            })?;
        Ok(Response::new(bundle(&index, &package, channel, entry)?))
    }

    async fn get_bundle_for_channel(
        &self,
        request: Request<api::GetBundleInChannelRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let index = self.index()?;
        let request = request.into_inner();
        let package = package(&index, &request.pkg_name)?;
        let channel = channel(&package, &request.channel_name)?;
        let entry = channel
            .entries
            .iter()
            .find(|entry| name_of(&package, entry) == channel.head)
            .ok_or_else(|| unknown(format!("no bundle found for channel {}", quote(&channel.name))))?;
        Ok(Response::new(bundle(&index, &package, channel, entry)?))
    }

    async fn get_channel_entries_that_replace(
        &self,
        request: Request<api::GetAllReplacementsRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatReplaceStream>, Status> {
        let index = self.index()?;
        let connection = connection(&request);
        let name = request.into_inner().csv_name;
        let mut found = Vec::new();
        for slot in index.packages() {
            let package = index.section(slot).map_err(|error| damaged(&error))?;
            for channel in &package.channels {
                for entry in channel
                    .entries
                    .iter()
                    .filter(|entry| entry.replaces == name || entry.skips.contains(&name))
                {
                    found.push(channel_entry(&package, channel, entry, &entry.replaces));
                }
            }
        }
        if found.is_empty() {
            return Err(unknown(format!("no channel entries found that replace {name}")));
        }
        Ok(stream(found, connection.as_ref()))
    }

    async fn get_bundle_that_replaces(
        &self,
        request: Request<api::GetReplacementRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let index = self.index()?;
        let api::GetReplacementRequest {
            csv_name,
            pkg_name,
            channel_name,
        } = request.into_inner();
        let package = package(&index, &pkg_name)?;
        let channel = channel(&package, &channel_name)?;
        let entry = channel
            .entries
            .iter()
            .find(|entry| entry.replaces == csv_name || entry.skips.contains(&csv_name))
            .ok_or_else(|| {
                let (package, channel) = (quote(&pkg_name), quote(&channel_name));
                unknown(format!("no entry found for package {package}, channel {channel}"))
            })?;
        Ok(Response::new(bundle(&index, &package, channel, entry)?))
    }

    async fn get_channel_entries_that_provide(
        &self,
        request: Request<api::GetAllProvidersRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatProvideStream>, Status> {
        let index = self.index()?;
        let connection = connection(&request);
        let api::GetAllProvidersRequest {
            group, version, kind, ..
        } = request.into_inner();
        let found = providers(&index, &ApiQuery { group, version, kind }, false)?;
        Ok(stream(found, connection.as_ref()))
    }

    async fn get_latest_channel_entries_that_provide(
        &self,
        request: Request<api::GetLatestProvidersRequest>,
    ) -> Result<Response<Self::GetLatestChannelEntriesThatProvideStream>, Status> {
        let index = self.index()?;
        let connection = connection(&request);
        let api::GetLatestProvidersRequest {
            group, version, kind, ..
        } = request.into_inner();
        let found = providers(&index, &ApiQuery { group, version, kind }, true)?;
        Ok(stream(found, connection.as_ref()))
    }

    async fn get_default_bundle_that_provides(
        &self,
        request: Request<api::GetDefaultProviderRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let index = self.index()?;
        let api::GetDefaultProviderRequest {
            group, version, kind, ..
        } = request.into_inner();
        let wanted = ApiQuery { group, version, kind };
        for found in providers(&index, &wanted, true)? {
            let package = package(&index, &found.package_name)?;
            if found.channel_name == package.default_channel {
                let channel = channel(&package, &found.channel_name)?;
                if let Some(entry) = channel
                    .entries
                    .iter()
                    .find(|entry| name_of(&package, entry) == found.bundle_name)
                {
                    return Ok(Response::new(bundle(&index, &package, channel, entry)?));
                }
            }
        }
        Err(unknown(format!("no entry found that provides {wanted}")))
    }

    async fn list_bundles(
        &self,
        request: Request<api::ListBundlesRequest>,
    ) -> Result<Response<Self::ListBundlesStream>, Status> {
        let index = self.index()?;
        let connection = connection(&request);
        // One block is read at a time, and one bundle of it, after the client has read the previous data: a client that
        // reads nothing costs little.
        let blocks = futures::stream::iter(0..index.blocks());
        let messages = blocks.flat_map(move |block| list_block(index.clone(), block, connection.as_ref()));
        Ok(Response::new(Box::pin(messages)))
    }
}

/// The messages of one block of the list.
fn list_block(
    index: Arc<Index>,
    block: usize,
    connection: Option<&Handle>,
) -> impl Stream<Item = Result<api::Bundle, Status>> + use<> {
    match index.block(block) {
        Ok(items) => {
            let reserved = connection.map(|connection| connection.reserve(size_of_items(&items)));
            futures::stream::iter(items)
                .map(move |item| {
                    let _ = &reserved;
                    list_item(&index, item)
                })
                .left_stream()
        }
        Err(error) => futures::stream::iter([Err(damaged(&error))]).right_stream(),
    }
}

fn list_item(index: &Index, item: ListItem) -> Result<api::Bundle, Status> {
    let mut bytes = BytesMut::from(item.entry.as_ref());
    bytes.extend_from_slice(&index.piece(item.common).map_err(|error| damaged(&error))?);
    let mut message = api::Bundle::decode(bytes.freeze()).map_err(|_| Status::data_loss("the index is damaged"))?;
    if let Some(extent) = item.manifests {
        let name = message.package_name.clone();
        add_manifests(index, &mut message, extent, || display(index, &package(index, &name)?))?;
    }
    Ok(message)
}

#[tonic::async_trait]
impl ExperimentalRegistry for Service {
    type ExperimentalListPackageCustomSchemasStream = Answers<prost_types::Struct>;

    async fn experimental_list_package_custom_schemas(
        &self,
        request: Request<api::ExperimentalListPackageCustomSchemasRequest>,
    ) -> Result<Response<Self::ExperimentalListPackageCustomSchemasStream>, Status> {
        let acknowledged = request
            .metadata()
            .get("x-acknowledge-experimental")
            .is_some_and(|value| value.as_bytes() == b"true");
        if !acknowledged {
            return Ok(stream(Vec::new(), None));
        }
        let index = self.index()?;
        let connection = connection(&request);
        let request = request.into_inner();
        if request.schema.is_empty() {
            return Err(Status::invalid_argument("schema is required"));
        }
        let found = index.customs(&request.schema, &request.package_name);
        Ok(stream(found.map_err(|error| damaged(&error))?, connection.as_ref()))
    }
}
