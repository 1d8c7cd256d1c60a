import type { Broker, ClusterFile, SimAction, SimEvent, ZonePolicy } from '../../../placement/index.ts';
import { dice } from './random-cluster.ts';
import { broker, resource } from './rows.ts';

const ZONE_POLICIES: readonly ZonePolicy[] = ['broker', 'zone', 'majority'];

/** What the events before have made of the cluster, as far as the next must know it to be taken. */
interface Known {
  readonly brokers: string[];
  readonly zones: readonly (string | null)[];
  readonly down: Set<string>;
  readonly shards: Map<string, number>;
  readonly caps: boolean;
  made: number;
}

type Roll = (below: number) => number;

/** Up to `most` events that the cluster takes whatever became of it by then; one choice of `seed` each. */
export function randomEvents(
  file: ClusterFile,
  { seed, most, caps }: { seed: number; most: number; caps: boolean },
): SimEvent[] {
  const roll = dice(seed);
  const known: Known = {
    brokers: file.brokers.map(({ id }) => id),
    zones: [...new Set(file.brokers.map(({ zone }) => zone))],
    down: new Set(file.brokers.filter(({ lifecycle }) => lifecycle === 'down').map(({ id }) => id)),
    shards: new Map(file.resources.map((row) => [`${row.kind}:${row.name}`, row.shards])),
    caps,
    made: 0,
  };
  return Array.from({ length: 1 + roll(most) }, () => {
    const action = randomAction(known, roll);
    // Before a restore is due, or once all has settled.
    const afterMs = action.type === 'up' && roll(2) === 0 ? roll(300_000) : null;
    return { action, afterMs, source: { ...action } };
  });
}

function randomAction(known: Known, roll: Roll): SimAction {
  const id = oneOf(known.brokers, roll);
  const key = oneOf([...known.shards.keys()], roll);
  switch (roll(11)) {
    case 0:
      return { type: 'drain', broker: id };
    case 1:
      return { type: 'undrain', broker: id };
    case 2:
    case 3:
      return downOrUp(known, id);
    case 4:
      return { type: 'create', resource: newResource(known, roll) };
    case 5:
      if (known.shards.size < 2) break;
      known.shards.delete(key);
      return { type: 'delete', resource: key };
    case 6:
      return { type: 'setPolicy', patch: { zonePolicy: oneOf(ZONE_POLICIES, roll) } };
    case 7:
      return { type: 'setBroker', id, patch: setting(known, roll) };
    case 8: {
      const shards = (known.shards.get(key) ?? 0) + roll(8);
      known.shards.set(key, shards);
      return { type: 'setResource', resource: key, patch: { shards } };
    }
    case 9:
      return { type: 'setResource', resource: key, patch: { replicationFactor: 1 + roll(4) } };
    case 10:
      return { type: 'setResource', resource: key, patch: { zonePolicy: oneOf(ZONE_POLICIES, roll) } };
  }
  return { type: 'join', broker: newBroker(known, roll) };
}

/** The last broker that serves stays up. */
function downOrUp(known: Known, id: string): SimAction {
  if (known.down.delete(id)) return { type: 'up', broker: id };
  if (known.down.size + 1 === known.brokers.length) return { type: 'undrain', broker: id };
  known.down.add(id);
  return { type: 'down', broker: id };
}

function newBroker(known: Known, roll: Roll): Broker {
  const row = broker(`n${known.made++}`, { zone: oneOf(known.zones, roll), ...setting(known, roll) });
  known.brokers.push(row.id);
  return row;
}

function setting({ caps }: Known, roll: Roll): { weight: number } | { maxShards: number } {
  return caps && roll(2) === 0 ? { maxShards: 2 + roll(30) } : { weight: 1 + roll(3) };
}

function newResource(known: Known, roll: Roll): ReturnType<typeof resource> {
  const row = resource(`e${known.made++}`, 1 + roll(16), {
    replicationFactor: 1 + roll(4),
    durable: roll(8) > 0,
    zonePolicy: roll(3) === 0 ? oneOf(ZONE_POLICIES, roll) : null,
  });
  known.shards.set(`stream:${row.name}`, row.shards);
  return row;
}

function oneOf<T>(list: readonly T[], roll: Roll): T {
  const one = list[roll(list.length)];
  if (one === undefined) throw new Error('nothing to choose from');
  return one;
}
