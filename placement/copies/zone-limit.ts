import type { ZonePolicy } from '../model.ts';
import type { Field } from './field.ts';

/** What a zone policy asks of every shard, for one number of copies. */
export interface ZoneRule {
  readonly policy: ZonePolicy;
  /** Copies of a shard (`rf'`). */
  readonly factor: number;
  /** Most copies of a shard that one zone may hold. */
  readonly most: number;
  /** What `most` would be if every zone had brokers enough. */
  readonly wanted: number;
  /** Fewest copies of a shard that every live zone holds: 1 under `zone` where zones are fewer than copies. */
  readonly least: number;
  /** Zones that every shard should span; 0 where the policy asks for none. */
  readonly span: number;
}

/** The rule of a policy, raised to what the zones' sizes can hold at all. Caps are not looked at. */
export function zoneRule(field: Field, policy: ZonePolicy, factor: number): ZoneRule {
  const zones = field.zones.length;
  const wanted = wantedMost(policy, factor, zones);
  let most = wanted;
  while (most < factor && placesFor(field, most) < factor) most++;
  return {
    policy,
    factor,
    most,
    wanted,
    least: policy === 'zone' && zones < factor ? 1 : 0,
    span: policy === 'zone' ? Math.min(factor, zones) : 0,
  };
}

function wantedMost(policy: ZonePolicy, factor: number, zones: number): number {
  if (zones < 2) return Math.max(1, factor);
  if (policy === 'broker') return Math.max(1, factor - 1);
  if (policy === 'majority') return Math.max(1, Math.floor((factor - 1) / 2));
  return Math.max(1, factor - zones + 1);
}

/** Copies of one shard that fit with at most `most` in a zone. */
function placesFor(field: Field, most: number): number {
  let places = 0;
  for (const z of field.zones) places += Math.min(most, field.size(z));
  return places;
}
