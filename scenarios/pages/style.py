"""The page's style sheet and its few lines of script: candidate switches, linked time axes, ranges."""

CSS = """
:root { --bg: #ffffff; --card: #f7f7f8; --fg: #1d1f23; --soft: #62666f; --line: #d9dbe0; --grid: #e4e6ea;
        --bad: #b3261e; --good: #15704a; --mixed: #8a5a00; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #15171a; --card: #1d2024; --fg: #e7e9ec; --soft: #a2a8b2; --line: #363b43; --grid: #2b3037;
          --bad: #ff8a80; --good: #6fd6a6; --mixed: #f0c060; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 24px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 13px; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 40px 0 8px;
     border-top: 1px solid var(--line); padding-top: 14px; }
h3 { font-size: 16px; line-height: 1.35; margin: 22px 0 0; font-weight: 600; }
p { margin: 4px 0 8px; max-width: 95ch; } .question { font-size: 17px; color: var(--soft); }
.note, .how, footer { color: var(--soft); font-size: 13.5px; } .how { max-width: 130ch; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; margin: 12px 0; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
td.text { white-space: normal; min-width: 150px; max-width: 280px; } td.num { text-align: right; }
th.num { text-align: right; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); font-weight: 600; }
.mixed { color: var(--mixed); font-weight: 600; } .quiet { color: var(--soft); }
.dot { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px; }
.bar { position: sticky; top: 0; z-index: 9; background: var(--bg); border-bottom: 1px solid var(--line);
       padding: 8px 0; display: flex; gap: 8px; flex-wrap: wrap; align-items: center; }
button { font: inherit; font-size: 13.5px; color: var(--fg); background: var(--card); border: 1px solid var(--line);
         border-radius: 6px; padding: 3px 10px; cursor: pointer; }
button[aria-pressed=false] { opacity: .45; text-decoration: line-through; } .bar .gap { flex: 1; }
details { margin: 10px 0; } pre { overflow-x: auto; background: var(--card); padding: 12px; font-size: 12.5px; }
.js-plotly-plot .main-svg text { fill: var(--fg) !important; }
.js-plotly-plot .hoverlayer text { fill: #fff !important; }
.js-plotly-plot .gridlayer path { stroke: var(--grid) !important; }
.js-plotly-plot .modebar { opacity: .5; }
"""

SCRIPT = """
const plots = () => [...document.querySelectorAll('.js-plotly-plot')];
const timed = () => plots().filter(p => p.closest('section').dataset.time);
function toggle(button) {
  const on = button.getAttribute('aria-pressed') !== 'true', name = button.dataset.candidate;
  button.setAttribute('aria-pressed', on);
  for (const p of plots()) {
    const mine = p.data.map((t, i) => t.legendgroup === name ? i : -1).filter(i => i >= 0);
    if (mine.length) Plotly.restyle(p, {visible: on}, mine);
  }
}
let busy = false;
function ranges(p, from, to) {
  const update = {};
  for (const key of Object.keys(p.layout)) if (/^xaxis/.test(key)) update[key + '.range'] = [from, to];
  return Plotly.relayout(p, update);
}
function zoom(from, to, but) {
  busy = true;
  Promise.all(timed().filter(p => p !== but).map(p => ranges(p, from, to))).then(() => { busy = false; });
}
whenDrawn(() => {
  for (const p of timed()) p.on('plotly_relayout', e => {
    if (busy) return;
    const from = Object.keys(e).find(k => /^xaxis\\d*\\.range\\[0\\]$/.test(k));
    if (from) zoom(e[from], e[from.replace('[0]', '[1]')], p);
    else if (Object.keys(e).some(k => /^xaxis\\d*\\.autorange$/.test(k))) zoom(WHOLE[0], WHOLE[1], null);
  });
});
"""
