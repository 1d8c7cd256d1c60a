/**
 * What vouches for the records of a broker that registers again: the store's id, and how many registrations it has
 * counted. The count is stored before it is sent, so that an older copy of the store can only send one that was used.
 */
export interface StoreCount {
  /** Counts one more; resolves once synced. Called before each registration that is no resumption. */
  count(): Promise<{ readonly storeId: string; readonly starts: number }>;
  /** The registration counted last was refused because another process holds the id: its number was not used. */
  takeBack(): Promise<void>;
}
