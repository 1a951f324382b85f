//! Parts of timestamps and durations.

use super::Found;
use crate::budget::Failure;
use crate::runtime::Runtime;
use crate::value::Value;
use crate::value::time::{self, Timestamp};

pub(super) fn call(_: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    match args {
        _ if !is_member => None,
        [Value::Timestamp(moment)] => part(*moment, name, 0),
        [Value::Timestamp(moment), Value::String(zone)] => {
            let Some(offset) = time::zone_offset(zone) else {
                part(*moment, name, 0)?.ok()?;
                return Some(Err(Failure::undecided("a time zone")));
            };
            part(*moment, name, offset)
        }
        [Value::Duration(nanos)] => {
            let unit = match name {
                "getHours" => 3_600_000_000_000,
                "getMinutes" => 60_000_000_000,
                "getSeconds" => 1_000_000_000,
                "getMilliseconds" => 1_000_000,
                _ => return None,
            };
            Some(Ok(Value::Int(nanos / unit)))
        }
        _ => None,
    }
}

fn part(moment: Timestamp, name: &str, offset: i64) -> Found {
    let parts = moment.parts(offset);
    Some(Ok(Value::Int(match name {
        "getFullYear" => parts.year,
        "getMonth" => parts.month,
        "getDayOfYear" => parts.day_of_year,
        "getDayOfMonth" => parts.day - 1,
        "getDate" => parts.day,
        "getDayOfWeek" => parts.day_of_week,
        "getHours" => parts.hour,
        "getMinutes" => parts.minute,
        "getSeconds" => parts.second,
        "getMilliseconds" => i64::from(moment.nanos / 1_000_000),
        _ => return None,
    })))
}
