//! Decides which request is next: accounting only.
//!
//! Of the waiting accounts, the one with the fewest requests in flight goes first; of equals, the one whose last turn is longest
//! ago. So an account that floods takes only the turns that others leave; and since no account may take all, an account whose
//! requests hang leaves room for the others.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The account of a request: an operator, or a part of the process. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(Arc<str>);

impl Share {
    /// Equal names are one account.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

/// A place in line.
pub(crate) type QueuePosition = u64;

/// All accounts with a request in flight or waiting.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    accounts: BTreeMap<Share, Account>,
    in_flight: usize,
    last: QueuePosition,
    tickets: u64,
}

#[derive(Debug, Default)]
struct Account {
    in_flight: usize,
    waiting: VecDeque<QueuePosition>,
    last_turn: u64,
}

/// The most requests of `limit` that one account may have: three in four.
fn most(limit: usize) -> usize {
    limit - limit / 4
}

impl Shares {
    /// Joins the line.
    pub(crate) fn ask(&mut self, share: &Share) -> QueuePosition {
        self.last += 1;
        let account = self.accounts.entry(share.clone()).or_default();
        account.waiting.push_back(self.last);
        self.last
    }

    /// Leaves the line; false if it is not in line because it had its turn.
    pub(crate) fn give_up(&mut self, share: &Share, ticket: QueuePosition) -> bool {
        let Some(account) = self.accounts.get_mut(share) else {
            return false;
        };
        let before = account.waiting.len();
        account.waiting.retain(|waiting| *waiting != ticket);
        let was_there = account.waiting.len() < before;
        self.drop_if_idle(share);
        was_there
    }

    /// Returns the next ticket if fewer than `limit` requests are in flight; its request counts from then on.
    pub(crate) fn next(&mut self, limit: usize) -> Option<QueuePosition> {
        if self.in_flight >= limit {
            return None;
        }
        let (_, account) = (self.accounts.iter_mut())
            .filter(|(_, account)| !account.waiting.is_empty() && account.in_flight < most(limit))
            .min_by_key(|(_, account)| (account.in_flight, account.last_turn))?;
        let ticket = account.waiting.pop_front()?;
        self.tickets += 1;
        account.last_turn = self.tickets;
        account.in_flight += 1;
        self.in_flight += 1;
        Some(ticket)
    }

    /// A request has finished.
    pub(crate) fn done(&mut self, share: &Share) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(account) = self.accounts.get_mut(share) {
            account.in_flight = account.in_flight.saturating_sub(1);
        }
        self.drop_if_idle(share);
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether a request waits.
    pub(crate) fn has_waiting(&self) -> bool {
        (self.accounts.values()).any(|account| !account.waiting.is_empty())
    }

    fn drop_if_idle(&mut self, share: &Share) {
        let is_idle = |account: &Account| account.in_flight == 0 && account.waiting.is_empty();
        if self.accounts.get(share).is_some_and(is_idle) {
            self.accounts.remove(share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(name: &str) -> Share {
        Share::new(name)
    }

    /// Starts requests until the limit is reached, and returns their names in order.
    fn tickets(
        shares: &mut Shares,
        limit: usize,
        names: &BTreeMap<QueuePosition, &'static str>,
    ) -> String {
        let mut text = String::new();
        while let Some(ticket) = shares.next(limit) {
            text.push_str(names[&ticket]);
        }
        text
    }

    #[test]
    fn those_who_wait_go_in_turn_and_not_by_how_much_they_ask() {
        let (mut shares, mut names) = (Shares::default(), BTreeMap::new());
        for _ in 0..50 {
            names.insert(shares.ask(&share("a")), "a");
        }
        for name in ["b", "b", "c"] {
            names.insert(shares.ask(&share(name)), name);
        }
        assert_eq!(tickets(&mut shares, 8, &names), "abcabaaa");
        // A free permit goes to the account with the fewest requests in flight.
        for _ in 0..2 {
            shares.done(&share("a"));
        }
        names.insert(shares.ask(&share("d")), "d");
        assert_eq!(tickets(&mut shares, 8, &names), "da");
    }

    #[test]
    fn nobody_takes_everything_even_while_nobody_else_asks() {
        let (mut shares, mut names) = (Shares::default(), BTreeMap::new());
        for _ in 0..50 {
            names.insert(shares.ask(&share("a")), "a");
        }
        assert_eq!(tickets(&mut shares, 8, &names), "aaaaaa");
        names.insert(shares.ask(&share("b")), "b");
        assert_eq!(tickets(&mut shares, 8, &names), "b");
        // If the limit is one request, any account may start it.
        let mut shares = Shares::default();
        let ticket = shares.ask(&share("a"));
        assert_eq!(shares.next(1), Some(ticket));
    }

    #[test]
    fn within_an_account_it_is_first_come_first_served() {
        let mut shares = Shares::default();
        let tickets: Vec<QueuePosition> = (0..5).map(|_| shares.ask(&share("a"))).collect();
        let mut gone = Vec::new();
        while let Some(ticket) = shares.next(1) {
            gone.push(ticket);
            shares.done(&share("a"));
        }
        assert_eq!(gone, tickets);
    }

    #[test]
    fn whoever_gives_up_leaves_the_line_and_costs_nothing() {
        let mut shares = Shares::default();
        let first = shares.ask(&share("a"));
        let second = shares.ask(&share("a"));
        assert!(shares.give_up(&share("a"), first));
        assert_eq!(shares.next(4), Some(second));
        assert!(!shares.give_up(&share("a"), second));
        shares.done(&share("a"));
        assert_eq!((shares.in_flight(), shares.accounts.len()), (0, 0));
        assert!(!shares.has_waiting());
    }
}
