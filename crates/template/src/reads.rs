//! Determines which parts of the root data a template reads.
//!
//! The origin of an expression is either a known path that is not counted as read yet, because a field after it may narrow
//! it, or something already counted. If a value is used as a whole (printed, tested, passed to a note), its path is read. A
//! value that cannot be followed is counted as read as a whole first, so the result is complete.

use std::collections::BTreeSet;

use super::ast::{Block, CallExpr, Expr, ExprKind, LoopVars, Stmt, Store};
use orkestra_object::value::{Key, Node, Path};

/// Returns the paths, sorted and without duplicates.
pub(crate) fn reads(body: &Block) -> Box<[Path]> {
    let mut walk = ReadWalk {
        read: BTreeSet::new(),
        vars: Vec::new(),
    };
    walk.block(body, &Origin::Known(Path::root()));
    walk.read.into_iter().collect()
}

#[derive(Clone)]
enum Origin {
    /// A path that is not read yet.
    Known(Path),
    /// Created by the template, or below a path that is read as a whole.
    Read,
}

impl Origin {
    fn fields(self, keys: &[Key]) -> Origin {
        match self {
            Origin::Known(mut path) => {
                for key in keys {
                    path.push_field(key.clone());
                }
                Origin::Known(path)
            }
            Origin::Read => Origin::Read,
        }
    }
}

struct ReadWalk {
    read: BTreeSet<Path>,
    /// The origins of the variables, by slot.
    vars: Vec<Origin>,
}

impl ReadWalk {
    fn block(&mut self, body: &Block, dot: &Origin) {
        let scope = self.vars.len();
        for stmt in body {
            self.statement(stmt, dot);
        }
        self.vars.truncate(scope);
    }

    fn statement(&mut self, stmt: &Stmt, dot: &Origin) {
        match stmt {
            Stmt::Text(..) | Stmt::Break | Stmt::Continue => {}
            Stmt::Own(never) => match *never {},
            // A loop may use an older variable before this assignment.
            Stmt::Print(expr) | Stmt::Assign(_, expr) => self.whole(expr, dot),
            Stmt::Declare(expr) => {
                let origin = self.origin(expr, dot);
                self.vars.push(origin);
            }
            Stmt::If(branches) | Stmt::With(branches) => {
                let scope = self.vars.len();
                for arm in &branches.arms {
                    let origin = self.origin(&arm.test, dot);
                    self.consume(origin.clone());
                    if arm.store == Store::Declare {
                        self.vars.push(origin.clone());
                    }
                    match stmt {
                        Stmt::With(_) => self.block(&arm.body, &origin),
                        _ => self.block(&arm.body, dot),
                    }
                }
                self.block(&branches.otherwise, dot);
                self.vars.truncate(scope);
            }
            Stmt::Range(range) => {
                let scope = self.vars.len();
                self.whole(&range.over, dot);
                if let LoopVars::Declare { with_key } = range.vars {
                    let count = if with_key { 2 } else { 1 };
                    self.vars.resize(scope + count, Origin::Read);
                }
                self.block(&range.body, &Origin::Read);
                self.block(&range.otherwise, dot);
                self.vars.truncate(scope);
            }
        }
    }

    fn whole(&mut self, expr: &Expr, dot: &Origin) {
        let origin = self.origin(expr, dot);
        self.consume(origin);
    }

    fn consume(&mut self, origin: Origin) {
        if let Origin::Known(path) = origin {
            self.read.insert(path);
        }
    }

    fn origin(&mut self, expr: &Expr, dot: &Origin) -> Origin {
        match &expr.kind {
            ExprKind::Literal(_) => Origin::Read,
            ExprKind::Dot => dot.clone(),
            ExprKind::Root => Origin::Known(Path::root()),
            ExprKind::Var(slot) => self
                .vars
                .get(usize::from(*slot))
                .cloned()
                .unwrap_or(Origin::Known(Path::root())),
            ExprKind::Field(keys) => dot.clone().fields(keys),
            ExprKind::Within(within) => self.origin(&within.0, dot).fields(&within.1),
            ExprKind::Call(call) => self.call(call, dot),
            ExprKind::Function(function) => {
                let read = function.template.reads().iter().cloned();
                self.read.extend(read);
                Origin::Read
            }
            ExprKind::Pipe(stages) => {
                for stage in stages {
                    self.whole(stage, dot);
                }
                Origin::Read
            }
        }
    }

    /// `get` and `index` with constant keys extend the path. Every other note reads its arguments as a whole, except for the
    /// first if the note declares the parts that it reads. So does an index that is a number, because it may index a text.
    fn call(&mut self, call: &CallExpr, dot: &Origin) -> Origin {
        if let ([object, others @ ..], true) = (&*call.args, call.note.reads_parts()) {
            let object = self.origin(object, dot);
            let key = others.first().and_then(|arg| arg.literal()?.as_str());
            for path in call.note.reads {
                let keys = path.split('.').map(|step| match step {
                    "*" => key.map(Key::new),
                    step => Some(Key::new(step)),
                });
                // An unknown key stands for all keys.
                let keys: Vec<Key> = keys.flatten().collect();
                self.consume(object.clone().fields(&keys));
            }
            for arg in others {
                self.whole(arg, dot);
            }
            return Origin::Read;
        }
        let ([from, keys @ ..], true) = (&*call.args, call.note.leads_on()) else {
            call.args.iter().for_each(|arg| self.whole(arg, dot));
            return Origin::Read;
        };
        let mut origin = self.origin(from, dot);
        for key in keys {
            origin = match (origin, key.literal()) {
                (Origin::Known(mut path), Some(Node::Str(key))) => {
                    path.push_field(&**key);
                    Origin::Known(path)
                }
                (origin, _) => {
                    self.consume(origin);
                    self.whole(key, dot);
                    Origin::Read
                }
            };
        }
        origin
    }
}
