import type { Move, Policy } from './model.ts';

/** What a move needs of the slots. */
export type SlotUse = Pick<Move, 'copied' | 'from' | 'to'>;

/**
 * Moves in flight against the policy's slots. A move that copies data takes a copy slot, and counts at the
 * broker it goes to and the one it leaves; a leadership move that copies nothing takes a hand-over slot.
 */
export class MoveSlots {
  #copies = 0;
  #handovers = 0;
  readonly #perBroker = new Map<string, number>();

  get copies(): number {
    return this.#copies;
  }

  get handovers(): number {
    return this.#handovers;
  }

  /** Copies in flight into or out of one broker. */
  at(broker: string): number {
    return this.#perBroker.get(broker) ?? 0;
  }

  add(move: SlotUse): void {
    this.#count(move, 1);
  }

  remove(move: SlotUse): void {
    this.#count(move, -1);
  }

  /** Why the policy has no room for one more move like this; `null`: it has. */
  refusal(move: SlotUse, policy: Policy): string | null {
    if (!move.copied) {
      return this.#handovers < policy.maxConcurrentHandovers
        ? null
        : `all ${policy.maxConcurrentHandovers} hand-over slots (maxConcurrentHandovers) are taken`;
    }
    if (this.#copies >= policy.maxConcurrentMoves) {
      return `all ${policy.maxConcurrentMoves} copy slots (maxConcurrentMoves) are taken`;
    }
    const limit = policy.maxMovesPerBroker;
    if (limit === null) return null;
    for (const broker of endsOf(move)) {
      if (this.at(broker) >= limit)
        return `${broker} already takes part in ${limit} copies (maxMovesPerBroker)`;
    }
    return null;
  }

  #count(move: SlotUse, by: 1 | -1): void {
    if (!move.copied) {
      this.#handovers += by;
      return;
    }
    this.#copies += by;
    for (const broker of endsOf(move)) {
      const count = this.at(broker) + by;
      if (count === 0) this.#perBroker.delete(broker);
      else this.#perBroker.set(broker, count);
    }
  }
}

function endsOf(move: SlotUse): readonly string[] {
  return move.from === null ? [move.to] : [move.to, move.from];
}
