/** What clients saw of a register, in the form that a linearizability checker takes. */
export interface SimOperationRecord {
  readonly client: string;
  readonly key: string;
  readonly input:
    | { readonly type: 'read' }
    | { readonly type: 'write'; readonly value: string }
    | { readonly type: 'cas'; readonly from: string; readonly to: string };
  readonly calledAt: number;
  readonly returned: { readonly at: number; readonly output: SimOutput } | null;
}

export type SimOutput =
  | { readonly type: 'read'; readonly value: string | null }
  | { readonly type: 'write' }
  | { readonly type: 'cas'; readonly swapped: boolean };

/** Records calls and returns in the order in which they happened. */
export class History {
  readonly #records: SimOperationRecord[] = [];
  readonly #open = new Set<Omit<SimOperationRecord, 'returned'>>();
  #instant = 0;

  call(client: string, key: string, input: SimOperationRecord['input']): HistoryCall {
    const call = { client, key, input, calledAt: ++this.#instant };
    this.#open.add(call);
    return {
      returned: (output) => {
        if (this.#open.delete(call))
          this.#records.push({ ...call, returned: { at: ++this.#instant, output } });
      },
      hadNoEffect: () => this.#open.delete(call),
    };
  }

  /** All that returned, and as unknown all that did not. */
  get records(): SimOperationRecord[] {
    const open = [...this.#open].map((call) => ({ ...call, returned: null }));
    return [...this.#records, ...open.filter((call) => call.input.type !== 'read')];
  }

  get acknowledged(): number {
    return this.#records.length;
  }
}

export interface HistoryCall {
  returned(output: SimOutput): void;
  /** It certainly did nothing, so that it never happened. */
  hadNoEffect(): void;
}
