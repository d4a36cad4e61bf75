//! The report in a real browser: pictures are drawn, nothing is fetched, no script fails.

use std::fs;
use std::process::Command;

use crate::support::{map, tool};

#[test]
fn the_report_draws_its_pictures_without_errors() {
    let map = map();
    let page = map.folder.join("isochrone.html");
    let text = fs::read_to_string(&page).expect("a report");
    for fetch in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!text.contains(fetch), "the page fetches something: {fetch}");
    }
    let Some(chromium) = tool("chromium") else { return };
    let picture = map.folder.join("report.png");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--enable-logging=stderr", "--window-size=1200,2400", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", map.folder.join("chromium").display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let complaints: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let dom = String::from_utf8_lossy(&output.stdout);
    let figures = dom.matches("iso-fig").count();
    assert!(figures >= 4, "{figures} pictures");
    assert!(!dom.contains("NaN"), "a picture has a number that is none");
    let png = fs::metadata(&picture).expect("a screenshot").len();
    assert!(png > 20_000, "{png} bytes: the picture is blank");
}
