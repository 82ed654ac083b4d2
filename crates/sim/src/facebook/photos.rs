//! Albums and photos. Every page has one album of what it put into its posts, and one of its own picture, if it has one.

use serde_json::{Value, json};

use super::Graph;
use super::fields::{Asked, Field};
use super::listing::{Listed, Order, Place, Row};
use super::nodes::{Found, Node, date};
use super::refusal::Refused;
use crate::dialect::plain_text;
use crate::world::time::DAY_US;
use crate::world::{Link, Media, Post, ids};

/// Fields that albums and photos have and in which there is nothing here.
const EMPTY: [&str; 6] = [
    "backdated_time",
    "description",
    "event",
    "location",
    "name_tags",
    "place",
];
/// The digits before the numbers of what an album or a photo is made from.
const TIMELINE_DIGIT: char = '4';
const PROFILE_DIGIT: char = '5';
const PICTURE_DIGIT: char = '6';
const PHOTO_DIGIT: char = '7';
const SIDE: u64 = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Album {
    user: u64,
    /// Its own pictures, or those in its posts.
    is_profile: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Photo {
    user: u64,
    /// The post that it is part of, its place there, and what it is; a page's own picture has none.
    part: Option<(Post, usize, Media)>,
}

impl Graph<'_> {
    pub(super) fn album_id(&self, album: &Album) -> String {
        let digit = if album.is_profile {
            PROFILE_DIGIT
        } else {
            TIMELINE_DIGIT
        };
        format!("{digit}{}", self.page_id(album.user))
    }

    pub(super) fn photo_id(&self, photo: &Photo) -> String {
        match &photo.part {
            Some((post, place, _)) => format!("{PHOTO_DIGIT}{place}{}", post.id()),
            None => format!("{PICTURE_DIGIT}{}", self.page_id(photo.user)),
        }
    }

    fn owner_of(&self, id: &str, digit: char) -> Option<u64> {
        let id = ids::parse(id.strip_prefix(digit)?)?;
        let user = self.view.world.user_with_id(id)?;
        self.is_page(user).then_some(user)
    }

    pub(super) fn album_with_id(&self, id: &str) -> Option<Album> {
        let timeline = self.owner_of(id, TIMELINE_DIGIT).map(|user| Album {
            user,
            is_profile: false,
        });
        let profile = || {
            let user = self.owner_of(id, PROFILE_DIGIT)?;
            let is_there = self.view.world.traits(user).has_avatar;
            is_there.then_some(Album {
                user,
                is_profile: true,
            })
        };
        timeline.or_else(profile)
    }

    pub(super) fn photo_with_id(&self, id: &str) -> Option<Photo> {
        if let Some(user) = self.owner_of(id, PICTURE_DIGIT) {
            let is_there = self.view.world.traits(user).has_avatar;
            return is_there.then_some(Photo { user, part: None });
        }
        let rest = id.strip_prefix(PHOTO_DIGIT)?;
        let place = rest.get(..1)?.parse::<usize>().ok()?;
        let post = self.post_with_id(ids::parse(rest.get(1..)?)?)?;
        self.photos_of(&post).into_iter().nth(place)
    }

    /// The photos of a post.
    pub(super) fn photos_of(&self, post: &Post) -> Vec<Photo> {
        if !matches!(post.link, Link::None) {
            return Vec::new();
        }
        let media = self.view.world.content(post, self.view.now.at_us).media;
        let photo = |(place, media)| Photo {
            user: post.user(),
            part: Some((*post, place, media)),
        };
        media.into_iter().enumerate().map(photo).collect()
    }

    /// The photos of an album, newest first.
    fn photos_in(&self, album: &Album) -> Vec<Photo> {
        if album.is_profile {
            return vec![Photo {
                user: album.user,
                part: None,
            }];
        }
        let world = self.view.world;
        let posts = world.timeline_down(album.user, self.view.now, i64::MAX as u64);
        posts
            .flat_map(|post| self.photos_of(&post).into_iter().rev())
            .collect()
    }

    fn albums_of(&self, user: u64) -> Vec<Album> {
        let album = |is_profile| Album { user, is_profile };
        if self.view.world.traits(user).has_avatar {
            vec![album(false), album(true)]
        } else {
            vec![album(false)]
        }
    }

    pub(super) fn albums(&self, user: u64, asked: &Asked<'_>) -> Result<Listed, Refused> {
        let rows: Vec<Row<Album>> = (1..)
            .zip(self.albums_of(user))
            .map(|(number, item)| Row {
                number,
                is_shown: true,
                item,
            })
            .collect();
        let place = Place {
            node: &self.page_id(user),
            edge: "albums",
            is_slow: false,
        };
        let page = self.page(&rows, Order::Rising, place, asked)?;
        page.listed(|album| self.written_node(&Node::Album(*album), &asked.fields))
    }

    /// The photos of an album, or all that a page uploaded.
    pub(super) fn photos(&self, node: &Node, asked: &Asked<'_>) -> Result<Listed, Refused> {
        let photos: Vec<Photo> = match node {
            // Without a word on which are meant, it is those in which somebody is tagged: nobody is.
            Node::Page(user) if asked.get("type") == Some("uploaded") => {
                let albums = self.albums_of(*user).into_iter();
                albums.flat_map(|album| self.photos_in(&album)).collect()
            }
            Node::Album(album) => self.photos_in(album),
            _ => Vec::new(),
        };
        let row = |item: Photo| Row {
            number: item.part.as_ref().map_or(0, |(_, _, media)| media.id),
            is_shown: true,
            item,
        };
        let rows: Vec<Row<Photo>> = photos.into_iter().map(row).collect();
        let place = Place {
            node: &self.id(node),
            edge: "photos",
            is_slow: false,
        };
        let page = self.page(&rows, Order::Falling, place, asked)?;
        page.listed(|photo| self.written_node(&Node::Photo(*photo), &asked.fields))
    }

    fn began_us(&self, user: u64) -> i64 {
        self.view.world.traits(user).created_day * DAY_US
    }

    pub(super) fn album_field(&self, album: &Album, field: &Field<'_>) -> Found {
        let photos = || self.photos_in(album);
        let value = match field.name {
            "name" if album.is_profile => json!("Profile Pictures"),
            "name" => json!("Timeline Photos"),
            "type" if album.is_profile => json!("profile"),
            "type" => json!("wall"),
            "created_time" => json!(date(self.began_us(album.user))),
            "updated_time" => {
                let newest = photos().into_iter().next();
                json!(date(newest.map_or(self.began_us(album.user), |photo| {
                    self.taken_us(&photo)
                })))
            }
            "from" => self.author(album.user),
            "link" => json!(format!(
                "https://www.facebook.com/album.php?fbid={}&id={}",
                self.album_id(album),
                self.page_id(album.user)
            )),
            "count" | "photo_count" => json!(photos().len()),
            "video_count" => json!(0),
            "cover_photo" => {
                let cover = photos().into_iter().next();
                let cover = cover.map(|photo| {
                    let created = date(self.taken_us(&photo));
                    json!({ "created_time": created, "id": self.photo_id(&photo) })
                });
                return Some(cover);
            }
            "privacy" => json!("everyone"),
            name => return EMPTY.contains(&name).then_some(None),
        };
        Some(Some(value))
    }

    fn taken_us(&self, photo: &Photo) -> i64 {
        match &photo.part {
            Some((post, ..)) => post.draft.at_us,
            None => self.began_us(photo.user),
        }
    }

    pub(super) fn picture(&self, photo: &Photo) -> String {
        format!(
            "https://scontent.sim.example/{}_n.jpg",
            self.photo_id(photo)
        )
    }

    pub(super) fn photo_field(&self, photo: &Photo, field: &Field<'_>) -> Found {
        let part = photo.part.as_ref();
        let (width, height) = part.map_or((SIDE, SIDE), |(_, _, it)| (it.width, it.height));
        let value = match field.name {
            "name" => {
                let words = part.map(|(post, ..)| {
                    let content = self.view.world.content(post, self.view.now.at_us);
                    json!(plain_text(&content.html))
                });
                return Some(words);
            }
            "alt_text" => {
                let told = part.and_then(|(_, _, media)| media.description);
                return Some(told.map(|told| json!(told)));
            }
            "created_time" | "updated_time" => json!(date(self.taken_us(photo))),
            "from" => self.author(photo.user),
            "link" => json!(format!(
                "https://www.facebook.com/photo.php?fbid={}",
                self.photo_id(photo)
            )),
            "images" => json!([
                { "height": height, "source": self.picture(photo), "width": width }
            ]),
            "height" => json!(height),
            "width" => json!(width),
            "album" => {
                let album = Album {
                    user: photo.user,
                    is_profile: part.is_none(),
                };
                return Some(self.written_node(&Node::Album(album), &field.fields).ok());
            }
            "page_story_id" => return Some(part.map(|(post, ..)| json!(self.post_id(post)))),
            "picture" => json!(self.picture(photo)),
            name => return EMPTY.contains(&name).then_some(None),
        };
        Some(Some(value))
    }

    /// What is shown below the text of a post.
    pub(super) fn attachments(&self, post: &Post) -> Option<Value> {
        let photos = self.photos_of(post);
        let attachment = |photo: &Photo| {
            let part = photo.part.as_ref();
            let (width, height) = part.map_or((SIDE, SIDE), |(_, _, it)| (it.width, it.height));
            let id = self.photo_id(photo);
            let url = format!("https://www.facebook.com/photo.php?fbid={id}");
            json!({
                "media": { "image": { "height": height, "src": self.picture(photo), "width": width } },
                "media_type": "photo",
                "target": { "id": id, "url": url },
                "type": "photo",
                "url": url,
            })
        };
        match photos.as_slice() {
            [] => None,
            [photo] => Some(json!({ "data": [attachment(photo)] })),
            [first, ..] => {
                let mut album = attachment(first);
                album["media_type"] = json!("album");
                album["type"] = json!("album");
                let parts: Vec<Value> = photos.iter().map(attachment).collect();
                album["subattachments"] = json!({ "data": parts });
                Some(json!({ "data": [album] }))
            }
        }
    }
}
