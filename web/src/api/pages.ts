/** Reads a paged list to its end. For lists that people write, which are short. */
export async function allPages<T>(
  page: (cursor: { cursor?: string }) => Promise<{ items: T[]; nextCursor?: string }>,
): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | undefined; ; ) {
    const answer = await page(cursor ? { cursor } : {});
    items.push(...answer.items);
    cursor = answer.nextCursor;
    if (!cursor) return items;
  }
}
