import type { SimCluster } from './cluster.ts';

/** A connected quorum has a leader within so many election time-outs, however its links lie. */
const MAX_ELECTIONS = 8;
/** After that, so much of the time may pass without one. */
const MAX_LEADERLESS_PART = 0.15;

/** What the checks look at, again and again. */
export interface ElectionView {
  readonly nowMs: number;
  /** Names who runs and which links work. `null`: something fails that is not a matter of topology. */
  readonly topology: string | null;
  /** A member reaches a quorum, itself included. */
  readonly hasConnectedQuorum: boolean;
  /** So does a member that leads. */
  readonly isLed: boolean;
}

/**
 * While nothing changes, a quorum around one member finds a leader and keeps it. Throws where elections never end, and
 * where each leader is lost again soon.
 */
export class ElectionChecks {
  readonly #maxElectionMs: number;
  #topology: string | null = null;
  #sinceMs = 0;
  #lookedMs = 0;
  #leaderlessMs = 0;

  constructor(electionTimeoutMs: number) {
    this.#maxElectionMs = MAX_ELECTIONS * electionTimeoutMs;
  }

  look({ nowMs, topology, hasConnectedQuorum, isLed }: ElectionView): void {
    const passedMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    if (topology === null || topology !== this.#topology || !hasConnectedQuorum) {
      this.#topology = topology;
      this.#sinceMs = nowMs;
      this.#leaderlessMs = 0;
      return;
    }
    if (!isLed) this.#leaderlessMs += passedMs;
    const lastsMs = nowMs - this.#sinceMs;
    const allowedMs = this.#maxElectionMs + MAX_LEADERLESS_PART * Math.max(0, lastsMs - this.#maxElectionMs);
    if (this.#leaderlessMs <= allowedMs) return;
    throw new Error(
      `no leader for ${Math.round(this.#leaderlessMs)} of the ${Math.round(lastsMs)} ms that a connected quorum has lasted: ${topology}`,
    );
  }
}

/** What there is to see of a cluster now. */
export function electionView(cluster: SimCluster): ElectionView {
  const { members } = cluster.plan;
  const running = members.filter((id) => cluster.member(id) !== null);
  const pairs = running.flatMap((from) =>
    running.filter((to) => to !== from).map((to) => [from, to] as const),
  );
  const works = ([from, to]: readonly [string, string]): boolean => cluster.network.isWell(from, to);
  const isCalm =
    running.every((id) => cluster.process(id)?.stalled === false && cluster.disk(id).isWell) &&
    pairs.every((pair) => works(pair) || cluster.network.link(...pair).cut);
  const links = pairs.filter(works).map(([from, to]) => `${from}>${to}`);
  const open = new Set(links);
  const reach = (id: string): number =>
    running.filter((to) => to === id || (open.has(`${id}>${to}`) && open.has(`${to}>${id}`))).length;
  return {
    nowMs: cluster.world.nowMs,
    topology: isCalm ? `${running.join(' ')} up, links ${links.join(' ')}` : null,
    hasConnectedQuorum: running.some((id) => reach(id) * 2 > members.length),
    isLed: cluster.planeIsWell,
  };
}
