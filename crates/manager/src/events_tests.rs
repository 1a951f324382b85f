//! Tests of names, series and allowances.
use super::*;

#[test]
fn long_notes_are_cut_at_a_character() {
    assert_eq!(shorten("short", 10), "short");
    let cut = shorten(&"ü".repeat(600), MAX_NOTE);
    assert!(cut.len() <= MAX_NOTE && cut.ends_with('…'));
}

#[test]
fn every_object_has_a_name_for_its_events() {
    let named = |name: &str, uid: Option<&str>| {
        let regarding = ObjectReference {
            name: Some(name.to_owned()),
            uid: uid.map(ToOwned::to_owned),
            ..ObjectReference::default()
        };
        event_name(&regarding, 0x17a0_b1c2_d3e4_f506)
    };
    let uid = "5f0c3f6e-7d54-4d0b-9a52-2a4b8f3f0c11";
    assert_eq!(named("sample.v1", Some(uid)), "sample.v1.17a0b1c2d3e4f506");
    let longest = "a".repeat(236);
    assert_eq!(named(&longest, Some(uid)), format!("{longest}.17a0b1c2d3e4f506"));
    let other = format!("{uid}.17a0b1c2d3e4f506");
    for name in [&"a".repeat(237), "system:node", "Upper", "a..b", "-a", "", "ü"] {
        assert_eq!(named(name, Some(uid)), other, "{name}");
    }
    assert_eq!(named("system:node", None), "object.17a0b1c2d3e4f506");
    assert_eq!(named("system:node", Some("Node:1")), "object.17a0b1c2d3e4f506");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_of_a_series_for_six_minutes_and_then_forgotten() {
    let mut recents = Recents::default();
    assert_eq!(recents.step(7, Instant::now()), Step::Create);
    assert_eq!(recents.step(7, Instant::now()), Step::Create, "the first was refused");
    recents.created(7, 70, Instant::now());
    let count = |count| Step::Count { suffix: 70, count };
    assert_eq!(recents.step(7, Instant::now()), count(2));
    tokio::time::advance(SERIES / 2).await;
    assert_eq!(recents.step(7, Instant::now()), count(3));
    assert_eq!(recents.step(8, Instant::now()), Step::Create);
    tokio::time::advance(SERIES).await;
    assert_eq!(recents.step(7, Instant::now()), Step::Create);
    for digest in 0..5000 {
        recents.created(digest, 1, Instant::now());
    }
    tokio::time::advance(SERIES).await;
    for digest in 0..4000 {
        recents.created(10_000 + digest, 1, Instant::now());
    }
    assert!(recents.by_digest.len() <= 5000, "{}", recents.by_digest.len());
}

#[tokio::test(start_paused = true)]
async fn after_a_burst_about_one_object_others_are_still_heard() {
    let mut allowances = Allowances::default();
    let published = |allowances: &mut Allowances, uid: &str, count: usize| {
        (0..count)
            .filter(|_| allowances.take(uid, Severity::Warning, Instant::now()))
            .count()
    };
    assert_eq!(published(&mut allowances, "noisy", 1000), 25);
    assert_eq!(published(&mut allowances, "other", 1), 1);
    tokio::time::advance(Duration::from_secs(301)).await;
    assert_eq!(published(&mut allowances, "noisy", 1000), 1);
    tokio::time::advance(Duration::from_secs(26 * 300)).await;
    for object in 0..1100 {
        assert_eq!(published(&mut allowances, &format!("object {object}"), 1), 1);
    }
    assert!(
        !allowances.by_uid.contains_key("noisy"),
        "full allowances are forgotten"
    );
}

#[tokio::test(start_paused = true)]
async fn normal_events_about_all_objects_are_paced_and_warnings_are_not() {
    let mut allowances = Allowances::default();
    let published = |allowances: &mut Allowances, severity, name: &str| {
        let take = |object: &usize| allowances.take(&format!("{name} {object}"), severity, Instant::now());
        (0..2000).filter(take).count()
    };
    assert_eq!(published(&mut allowances, Severity::Normal, "first"), 1000);
    assert!(
        !allowances.by_uid.contains_key("first 1500"),
        "dropped events do not count for an object"
    );
    assert_eq!(published(&mut allowances, Severity::Warning, "second"), 2000);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(published(&mut allowances, Severity::Normal, "third"), 40);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(published(&mut allowances, Severity::Normal, "fourth"), 1000);
}

#[tokio::test(start_paused = true)]
async fn normal_events_give_way_to_work_and_warnings_do_not() {
    let work = Work::default();
    let is_busy = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let busy = Arc::clone(&is_busy);
    work.0
        .lock()
        .unwrap()
        .push(Box::new(move || busy.load(std::sync::atomic::Ordering::Relaxed)));
    let (warnings, queued_warnings) = mpsc::channel(8);
    let (normal, queued) = mpsc::channel(8);
    let mut outbox = Outbox {
        warnings: queued_warnings,
        normal: queued,
        work,
        due: Instant::now(),
    };
    let event = |event: Event| Queued {
        regarding: ObjectReference::default(),
        event,
        at: Timestamp::now(),
    };
    for note in ["a", "b", "c", "d"] {
        normal.try_send(event(Event::normal("Updated", note))).unwrap();
    }
    for note in ["x", "y"] {
        warnings.try_send(event(Event::warning("Failed", note))).unwrap();
    }
    let begin = Instant::now();
    let mut next = async || (outbox.next().await.unwrap().event.note, begin.elapsed().as_millis());
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(next().await);
    }
    is_busy.store(false, std::sync::atomic::Ordering::Relaxed);
    sent.push(next().await);
    let notes: Vec<&str> = sent.iter().map(|(note, _)| note.as_str()).collect();
    assert_eq!(notes, ["x", "y", "a", "b", "c"]);
    let [.., (_, first), (_, second), (_, third)] = sent.as_slice() else {
        unreachable!()
    };
    assert!(*first < 50 && (50..100).contains(second) && third == second, "{sent:?}");
    // The last ones wait for nothing.
    is_busy.store(true, std::sync::atomic::Ordering::Relaxed);
    drop((warnings, normal));
    assert_eq!(outbox.next().await.unwrap().event.note, "d");
    assert!(outbox.next().await.is_none());
}
