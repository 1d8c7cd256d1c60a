/** A shard of which a healthy copy in sync lives takes a write within this, whatever else has failed. */
const UNSERVED_BOUND_MS = 35_000;
/** A shard that has taken no write for so long is tried. */
const TRY_AFTER_MS = 12_000;

/** Cluster time goes on within this, whoever leads. */
const TIME_BOUND_MS = 10_000;

/** What the checks look at, once a second or so. */
export interface ServiceView {
  readonly nowMs: number;
  /** Every shard with its in-sync copies, as the newest state has it; `null`: no leader that reaches a quorum. */
  readonly shards: readonly { readonly shard: string; readonly inSync: readonly string[] }[] | null;
  /** Running, registered, with a disk that works, on whole links to the members. */
  readonly isWell: (broker: string) => boolean;
}

/**
 * No shard goes without service for long while the control plane works and a broker that holds it in sync is well. What
 * fails in between begins the time again: only what lasts counts.
 */
export class ServiceChecks {
  /** Since when a shard has been owed a write, and none was taken. */
  readonly #sinceMs = new Map<string, number>();
  #clusterMs = -1;
  /** Since when cluster time is what it is, while a leader works. */
  #stillSinceMs = 0;

  /** A client's append was answered. */
  served(shard: string): void {
    this.#sinceMs.delete(shard);
  }

  /** Cluster time as the leader has it, `null` where none works. Throws where it stands still. */
  lookAtTime(nowMs: number, clusterMs: number | null): void {
    if (clusterMs === null || clusterMs !== this.#clusterMs) {
      this.#clusterMs = clusterMs ?? -1;
      this.#stillSinceMs = nowMs;
    } else if (nowMs - this.#stillSinceMs > TIME_BOUND_MS) {
      throw new Error(`unserved: cluster time stands still at ${clusterMs} under a leader that works`);
    }
  }

  /** The shards to be tried now. Throws where one has waited too long. */
  look({ nowMs, shards, isWell }: ServiceView): string[] {
    const owed = (shards ?? []).filter(({ inSync }) => inSync.some((id) => isWell(id)));
    const names = new Set(owed.map(({ shard }) => shard));
    for (const shard of this.#sinceMs.keys()) if (!names.has(shard)) this.#sinceMs.delete(shard);
    const toTry: string[] = [];
    for (const { shard, inSync } of owed) {
      const sinceMs = this.#sinceMs.get(shard);
      if (sinceMs === undefined) {
        this.#sinceMs.set(shard, nowMs);
        continue;
      }
      if (nowMs - sinceMs > UNSERVED_BOUND_MS) {
        const well = inSync.filter((id) => isWell(id));
        throw new Error(
          `unserved: ${shard} has taken no write for ${Math.round(nowMs - sinceMs)} ms, though ${well.join(', ')} of in sync [${inSync.join(', ')}] is well`,
        );
      }
      if (nowMs - sinceMs > TRY_AFTER_MS) toTry.push(shard);
    }
    return toTry;
  }
}
