//! The visits to a page: runs of the first view, and of the one with warm caches.

use lab::browser::Run;
use lab::page::har::{self, Page};
use lab::page::{Runs, View, Views, Visit};

/// Visits to a page.
#[derive(Debug)]
pub(super) struct Visits {
    first: Vec<Visit>,
    warm: Vec<Visit>,
}

impl Visits {
    /// Returns the visits of an archive: the wanted page, or the first page with resources and all others with its URL,
    /// which are its further runs and its warm view.
    ///
    /// # Errors
    /// There is no such page, or it has no resources.
    pub(super) fn of_pages(mut pages: Vec<Page>, wanted: Option<&str>) -> Result<Self, String> {
        if let Some(wanted) = wanted {
            let place = har::find(&pages, wanted)?;
            pages = vec![pages.swap_remove(place)];
        }
        let mut visits: Vec<Visit> = pages.into_iter().map(|page| page.visit).collect();
        visits.retain(|visit| !visit.resources.is_empty());
        let url = visits.first().map(|visit| visit.url.clone());
        let url = url.ok_or_else(|| "the page has no entries".to_owned())?;
        visits.retain(|visit| visit.url == url);
        let is_cold = |visit: &Visit| visit.view == View::Cold;
        let (cold, warm): (Vec<Visit>, Vec<Visit>) = visits.into_iter().partition(is_cold);
        let (first, warm) = match cold.is_empty() {
            // A warm view alone is shown as the first view.
            true => (warm, cold),
            false => (cold, warm),
        };
        Ok(Self { first, warm })
    }

    /// The visits of a browser.
    pub(super) fn of_runs(runs: Vec<Run>) -> Self {
        let (first, warm): (Vec<Visit>, Vec<Option<Visit>>) =
            runs.into_iter().map(|run| (run.cold, run.warm)).unzip();
        let warm = warm.into_iter().flatten().collect();
        Self { first, warm }
    }

    /// Adds a note to all visits.
    pub(super) fn add_note(&mut self, note: &str) {
        for visit in self.all_mut() {
            visit.notes.push(note.to_owned());
        }
    }

    /// All visits, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Visit> {
        self.first.iter_mut().chain(&mut self.warm)
    }

    /// All visits, those of the first view before the others.
    pub(super) fn all(&self) -> Vec<&Visit> {
        self.first.iter().chain(&self.warm).collect()
    }

    /// Returns the visits with their analyses.
    ///
    /// # Errors
    /// There are no visits.
    pub(super) fn analysed(&self) -> Result<Views<'_>, String> {
        let first = Runs::of(&self.first).ok_or_else(|| "no visit was completed".to_owned())?;
        let warm = Runs::of(&self.warm);
        Ok(Views { first, warm })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::page::Resource;

    fn page(id: &str, url: &str, view: View, load_ms: f64, count: usize) -> Page {
        let mut visit = Visit {
            url: url.to_owned(),
            view,
            resources: vec![Resource::default(); count],
            ..Visit::default()
        };
        visit.timings.load_ms = Some(load_ms);
        Page {
            id: id.to_owned(),
            visit,
        }
    }

    #[test]
    fn pages_of_one_url_are_runs_and_views() {
        let pages = || {
            vec![
                page("0", "http://a/", View::Cold, 1.0, 0),
                page("1", "http://a/", View::Cold, 30.0, 1),
                page("2", "http://a/", View::Warm, 5.0, 1),
                page("3", "http://b/", View::Cold, 1.0, 1),
                page("4", "http://a/", View::Cold, 10.0, 1),
                page("5", "http://a/", View::Cold, 20.0, 1),
            ]
        };
        let visits = Visits::of_pages(pages(), None).expect("there are some");
        assert_eq!((visits.first.len(), visits.warm.len()), (3, 1));
        let shown = |visits: &Visits| visits.analysed().map(|all| all.first.shown().visit.clone());
        let middle = shown(&visits).expect("there is one");
        assert_eq!(middle.timings.load_ms, Some(20.0));
        let visits = Visits::of_pages(pages(), Some("2")).expect("it is there");
        assert_eq!((visits.first.len(), visits.warm.len()), (1, 0));
        assert_eq!(shown(&visits).map(|visit| visit.view), Ok(View::Warm));
        let empty = Visits::of_pages(pages(), Some("0")).map(|_| ());
        assert_eq!(empty, Err("the page has no entries".to_owned()));
        assert!(Visits::of_pages(pages(), Some("x")).is_err());
    }
}
