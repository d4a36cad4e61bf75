/* Calls an MPI with handles that are addresses of nothing. */
int MPI_Init(int *, void *), MPI_Bcast(void *, int, void *, int, void *), MPI_Barrier(void *), MPI_Finalize(void);

int main(void) {
    int word = 0;
    MPI_Init(0, 0);
    for (int call = 0; call < 10; call++) {
        if (MPI_Bcast(&word, 1, (void *)0x209, 0, (void *)0x101)) return 1;
        if (MPI_Barrier((void *)0x101)) return 1;
    }
    return MPI_Finalize();
}
