/** PostgreSQL: the number of the lock that stands for a name in this book, as SQL about the text `name`. A unit that lost holds
 *  it while it runs again; units that cannot lose hold it shared, so that whoever has its turn is alone. */
export function turnKey(name: string): string {
  return `hashtextextended(current_schema() || ':' || (${name})::text, 0)`;
}
