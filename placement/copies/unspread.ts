import type { UnspreadRow } from '../plan-types.ts';
import type { View } from '../view.ts';
import { zoneFault } from './measure.ts';
import { capText } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { copiesIn, zonesAfter } from './zones.ts';

/** Shards over a zone's limit or, under `zone`, in fewer zones than they could span; moves in flight finished. */
export function unspread(view: View, targets: CopyTargets): UnspreadRow[] {
  const rows: UnspreadRow[] = [];
  for (let s = 0; s < view.shardCount; s++) {
    if (view.counts[s] === 0) continue;
    const set = view.finished(s);
    const r = view.resource(s);
    if (zoneFault(view, targets, r, set) === 0) continue;
    const possible = Math.min(view.factor(r), targets.field.zones.length);
    rows.push({
      shard: view.shardKey(s),
      zones: zonesAfter(view, set),
      possible,
      ...because(view, targets, r, set),
    });
  }
  return rows;
}

function because(
  view: View,
  targets: CopyTargets,
  r: number,
  set: readonly number[],
): { reason: string; detail: string } {
  const { field } = targets;
  const { brokers } = view;
  const over: string[] = [];
  const full: string[] = [];
  let open = false;
  for (const z of field.zones) {
    const held = copiesIn(view, set, z);
    const limit = targets.limit(r, z);
    const name = brokers.zoneNames[z] ?? '';
    if (held > limit) over.push(`zone ${name} holds ${held} copies, its limit is ${limit}`);
    if (held >= limit) continue;
    const members = [...field.members.subarray(field.start[z], field.start[z + 1])].filter(
      (b) => !set.includes(b),
    );
    if (members.some((b) => view.room(b) > 0)) open = true;
    else if (members.length > 0)
      full.push(`zone ${name}: ${members.map((b) => `${brokers.id(b)} ${capText(view, b)}`).join(', ')}`);
  }
  const detail = [...over, ...full].join('; ');
  if (!open && full.length > 0) return { reason: 'zone_full', detail };
  return { reason: 'pending', detail: detail === '' ? 'a copy is to be replaced in a missing zone' : detail };
}
