import type { SimCluster } from './cluster.ts';
import { ANY_LEADER, type TopologyAction } from './plan.ts';

export interface TopologyHost {
  readonly cluster: SimCluster;
  readonly isHealed: boolean;
  cut(pairs: readonly (readonly [string, string])[], forMs: number): void;
  during(forMs: number, begin: () => void, end: () => void): void;
  handOver(from: string, to: string): void;
}

type Of<T extends TopologyAction['type']> = Extract<TopologyAction, { type: T }>;

/** Carries out topologies that last. */
export function beginTopology(action: TopologyAction, host: TopologyHost): void {
  if (action.type === 'center') beginCenter(action, host);
  else beginFlap(action, host);
}

/** Somebody else is to lead first: a center that leads already goes on leading. */
function beginCenter(action: Of<'center'>, host: TopologyHost): void {
  const { cluster } = host;
  const { center, sides, killsLeader, forMs } = action;
  const settleMs = cluster.plan.settings.electionTimeoutMs;
  if (cluster.leader === center) host.handOver(center, (sides[0] as readonly string[])[0] as string);
  cluster.world.schedule(settleMs, 'topology', () => {
    if (host.isHealed) return;
    slowDown(action, host);
    const pairs = sides.flatMap((side) =>
      sides
        .filter((other) => other !== side)
        .flatMap((other) => side.flatMap((from) => other.map((to): [string, string] => [from, to]))),
    );
    const { leader } = cluster;
    if (killsLeader && leader !== null && leader !== center) {
      cluster.kill(leader, { powerCut: false, downMs: forMs - settleMs });
    }
    host.cut(pairs, forMs - settleMs);
  });
}

function slowDown({ delayMs, forMs }: Of<'center'>, host: TopologyHost): void {
  if (delayMs === 0) return;
  const { cluster } = host;
  const { members, settings } = cluster.plan;
  const { delayMinMs, delayMaxMs } = settings;
  const set = (delays: { delayMinMs: number; delayMaxMs: number }) => (): void => {
    for (const from of members) {
      for (const to of members) if (from !== to) Object.assign(cluster.network.link(from, to), delays);
    }
  };
  host.during(
    forMs - settings.electionTimeoutMs,
    set({ delayMinMs: delayMs, delayMaxMs: delayMs + 1 }),
    set({ delayMinMs, delayMaxMs }),
  );
}

/** No member more may fail: whoever is up is needed for a quorum. */
function beginFlap({ bothWays, breakMs, everyMs, forMs }: Of<'flap'>, host: TopologyHost): void {
  const { cluster } = host;
  const { members } = cluster.plan;
  const leader = cluster.resolve(ANY_LEADER);
  const minority = Math.ceil(members.length / 2) - 1;
  for (const id of members.filter((member) => member !== leader).slice(0, minority)) {
    cluster.kill(id, { powerCut: false, downMs: forMs });
  }
  const untilMs = cluster.world.nowMs + forMs;
  const flap = (): void => {
    if (host.isHealed || cluster.world.nowMs >= untilMs) return;
    const leads = cluster.resolve(ANY_LEADER);
    const refusing = bothWays ? members : members.filter((id) => id !== leads);
    const set = (refused: boolean) => (): void => {
      for (const id of refusing) cluster.setPeersRefused(id, refused);
    };
    host.during(breakMs, set(true), set(false));
    cluster.world.schedule(everyMs, 'flap', flap);
  };
  cluster.world.schedule(everyMs, 'flap', flap);
}
