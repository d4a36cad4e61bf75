/* Types that exist on one rank only: the signature is the same everywhere, the layout is not. */
#include "check.h"

enum { COLUMN = 6, WIDTH = 3 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Datatype column, resized, backwards;
    if (rank == 0) {
        MPI_Type_vector(COLUMN, 1, WIDTH, MPI_INT, &column);
        MPI_Type_commit(&column);
        MPI_Type_create_resized(column, 0, sizeof(int), &resized);
        MPI_Type_commit(&resized);
    }
    int displacements[2] = { 1, 0 };
    MPI_Type_create_indexed_block(2, 1, displacements, MPI_INT, &backwards);
    MPI_Type_commit(&backwards);
    for (int round = 0; round < 20; round++) {
        int matrix[COLUMN * WIDTH], plain[COLUMN * 64];
        /* A column at the root, plain integers elsewhere. */
        for (int i = 0; i < COLUMN * WIDTH; i++) matrix[i] = number(0, round, i);
        memset(plain, 0, sizeof plain);
        if (rank == 0) MPI_Bcast(matrix + 1, 1, column, 0, MPI_COMM_WORLD);
        else MPI_Bcast(plain, COLUMN, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < COLUMN && rank; i++) CHECK(plain[i] == number(0, round, 1 + i * WIDTH));
        /* Plain integers at the last rank, a column at rank 0. */
        for (int i = 0; i < COLUMN * WIDTH; i++) matrix[i] = -1;
        for (int i = 0; i < COLUMN; i++) plain[i] = number(ranks - 1, round, i);
        if (rank == 0) MPI_Bcast(matrix + 2, 1, column, ranks - 1, MPI_COMM_WORLD);
        else MPI_Bcast(plain, COLUMN, MPI_INT, ranks - 1, MPI_COMM_WORLD);
        for (int i = 0; i < COLUMN * WIDTH && !rank; i++)
            CHECK(matrix[i] == (i % WIDTH == 2 ? number(ranks - 1, round, i / WIDTH) : -1));
        /* Gathered into columns, scattered from them. */
        int table[COLUMN * WIDTH * 64];
        if (ranks <= WIDTH) {
            for (int i = 0; i < COLUMN; i++) plain[i] = number(rank, round, i);
            if (rank == 0)
                MPI_Gather(plain, COLUMN, MPI_INT, table, 1, resized, 0, MPI_COMM_WORLD);
            else MPI_Gather(plain, COLUMN, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
            for (int r = 0; r < ranks && !rank; r++)
                for (int i = 0; i < COLUMN; i++) CHECK(table[i * WIDTH + r] == number(r, round, i));
            memset(plain, 0, sizeof plain);
            if (rank == 0) {
                MPI_Scatter(table, 1, resized, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
            } else {
                MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, plain, COLUMN, MPI_INT, 0, MPI_COMM_WORLD);
                for (int i = 0; i < COLUMN; i++) CHECK(plain[i] == number(rank, round, i));
            }
        }
        /* A type without gaps whose order is not that of memory. */
        int pair[2] = { 10 + round, 20 + round };
        if (rank == 0) MPI_Bcast(pair, 1, backwards, 0, MPI_COMM_WORLD);
        else MPI_Bcast(pair, 2, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(pair[0] == (rank ? 20 : 10) + round && pair[1] == (rank ? 10 : 20) + round);
        int mine[2] = { rank, -rank }, everybody[2 * 64];
        MPI_Allgather(mine, 1, backwards, everybody, 2, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) CHECK(everybody[2 * r] == -r && everybody[2 * r + 1] == r);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
