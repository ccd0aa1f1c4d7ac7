//! The constants of a template: the values that it compares with and falls back to.

use super::ast::{Block, CallExpr, Expr, ExprKind, Stmt};
use super::template::Template;
use orkestra_object::value::Node;

impl Template {
    /// Calls `visit` with each constant of an expression, also of the user's notes that it calls: `"gold"` and `3` of
    /// `{{ if eq .spec.tier "gold" }}{{ 3 }}{{ end }}`.
    ///
    /// ```
    /// use orkestra_template::Template;
    /// use orkestra_object::value::Node;
    ///
    /// let template = Template::parse(r#"{{ if eq .spec.tier "gold" }}{{ 3 }}{{ end }}"#)
    ///     .map_err(|errors| errors[0].clone())?;
    /// let mut found = Vec::new();
    /// template.visit_constants(&mut |node| found.push(node.clone()));
    /// assert_eq!(found, [Node::from("gold"), Node::Int(3)]);
    /// # Ok::<(), orkestra_template::TemplateError>(())
    /// ```
    pub fn visit_constants(&self, visit: &mut dyn FnMut(&Node)) {
        block(self.body(), visit);
    }
}

fn block(body: &Block, visit: &mut dyn FnMut(&Node)) {
    for stmt in body {
        match stmt {
            Stmt::Text(..) | Stmt::Break | Stmt::Continue => {}
            Stmt::Own(never) => match *never {},
            Stmt::Print(one) | Stmt::Declare(one) | Stmt::Assign(_, one) => expr(one, visit),
            Stmt::If(branches) | Stmt::With(branches) => {
                for arm in &branches.arms {
                    expr(&arm.test, visit);
                    block(&arm.body, visit);
                }
                block(&branches.otherwise, visit);
            }
            Stmt::Range(range) => {
                expr(&range.over, visit);
                block(&range.body, visit);
                block(&range.otherwise, visit);
            }
        }
    }
}

fn expr(one: &Expr, visit: &mut dyn FnMut(&Node)) {
    match &one.kind {
        ExprKind::Literal(node) => visit(node),
        ExprKind::Dot | ExprKind::Root | ExprKind::Var(_) | ExprKind::Field(_) => {}
        ExprKind::Within(within) => expr(&within.0, visit),
        ExprKind::Call(call) => {
            let CallExpr { note: _, args } = &**call;
            args.iter().for_each(|arg| expr(arg, visit));
        }
        ExprKind::Function(function) => function.template.visit_constants(visit),
        ExprKind::Pipe(stages) => stages.iter().for_each(|stage| expr(stage, visit)),
    }
}
