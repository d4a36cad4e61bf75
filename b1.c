/* abuse */
#define _GNU_SOURCE
#include <isochrone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#define T(x) do{int s_=(x);printf("%-60s -> %d %s\n",#x,s_,s_?isochrone_error():"");fflush(stdout);}while(0)
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static int nop(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;(void)r;return 0;}
static int slow(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;(void)r;usleep(200000);return 0;}
static int inc(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;++*(long*)r[0];return 0;}
static int bad(isochrone_task*t,const void*a,void*const*r){(void)a;(void)r;return isochrone_task_fail(t,"B is bad");}
static int exits(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;(void)r;pthread_exit(NULL);}
static int ran;
static int count(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;(void)r;__atomic_fetch_add(&ran,1,__ATOMIC_RELAXED);return 0;}
static int parentc(isochrone_task*t,const void*a,void*const*r){(void)a;(void)r;
  usleep(300000); /* cancelled meanwhile */
  isochrone_submission s={.size=sizeof s,.function=count,.name="kid"};
  for(int i=0;i<10;i++){int e=isochrone_task_submit(t,&s,NULL);if(e)printf("submit %d %s\n",e,isochrone_error());}
  int e=isochrone_task_wait(t);printf("parent's wait %d %s, vain %d\n",e,e?isochrone_error():"",isochrone_task_is_in_vain(t));return 0;}
static isochrone_tasks*g;
static void*other_wait(void*p){(void)p;T(isochrone_tasks_wait(g));return NULL;}
static void*other_cancel(void*p){(void)p;usleep(100000);T(isochrone_tasks_cancel(g));return NULL;}
static void*starter(void*p){(void)p;isochrone_tasks_options o={.size=sizeof o,.workers=2};T(isochrone_tasks_start(&o,NULL,0,&g));return NULL;}
static int nested_run(isochrone_task*t,const void*a,void*const*r){(void)t;(void)a;(void)r;
  isochrone_tasks*x;int s=isochrone_tasks_start(NULL,NULL,0,&x);printf("nested start %d\n",s);if(s)return 1;
  isochrone_submission q={.size=sizeof q,.function=count};for(int i=0;i<100;i++)isochrone_tasks_submit(x,&q,NULL);
  return isochrone_tasks_end(x);}
int main(int c,char**v){
  int w=c>1?atoi(v[1]):0; isochrone_tasks*t=NULL; isochrone_tasks_options o={.size=sizeof o,.workers=2};
  isochrone_handle h={{0}},h2; uint32_t d; isochrone_submission s={.size=sizeof s,.function=nop};
  alarm(20);
  if(w!=7)T(isochrone_tasks_start(&o,NULL,0,&t));
  switch(w){
  case 1:{ /* huge args */ char*m=malloc(64);
    s.arguments=m;s.bytes=1ull<<46;T(isochrone_tasks_submit(t,&s,NULL));
    s.bytes=~0ull;T(isochrone_tasks_submit(t,&s,NULL));
    char*big=calloc(1,300<<20);s.arguments=big;s.bytes=300<<20;T(isochrone_tasks_submit(t,&s,&h));T(isochrone_tasks_wait_for(t,h));
    s.bytes=(1ull<<63)-1;T(isochrone_tasks_submit(t,&s,NULL));break;}
  case 2:{ /* adopt twice, overlapping */ static long a[100];uint32_t d2,d3;
    T(isochrone_tasks_adopt(t,a,sizeof a,&d));T(isochrone_tasks_adopt(t,a,sizeof a,&d2));T(isochrone_tasks_adopt(t,a+50,8,&d3));
    T(isochrone_tasks_free(t,d));T(isochrone_tasks_adopt(t,a,sizeof a,&d2));
    T(isochrone_tasks_adopt(t,(void*)8,~0ull,&d2));T(isochrone_tasks_adopt(t,a,~0ull,&d2));break;}
  case 3:{ /* handles of failed */ s.function=bad;s.name="B";T(isochrone_tasks_submit(t,&s,&h));s.function=slow;s.name="A";
    T(isochrone_tasks_submit(t,&s,&h2));T(isochrone_tasks_wait_for(t,h2));T(isochrone_tasks_wait_for(t,h));T(isochrone_tasks_wait_for(t,h));T(isochrone_tasks_wait(t));
    isochrone_tasks_counts k={.size=sizeof k};T(isochrone_tasks_report(t,&k));printf("tasks %lu left %lu\n",k.tasks,k.left_out);break;}
  case 4:{ /* cancel twice, wait for a cancelled */ T(isochrone_tasks_cancel(t));T(isochrone_tasks_wait(t));
    s.function=slow;for(int i=0;i<8;i++)isochrone_tasks_submit(t,&s,NULL);s.function=count;T(isochrone_tasks_submit(t,&s,&h));
    T(isochrone_tasks_cancel(t));T(isochrone_tasks_cancel(t));double b=now();T(isochrone_tasks_wait_for(t,h));T(isochrone_tasks_wait_for(t,h));T(isochrone_tasks_wait(t));printf("%.2f s ran %d\n",now()-b,ran);
    T(isochrone_tasks_submit(t,&s,&h));T(isochrone_tasks_wait(t));printf("ran %d\n",ran);
    isochrone_tasks_counts k={.size=sizeof k};T(isochrone_tasks_report(t,&k));printf("tasks %lu left %lu\n",k.tasks,k.left_out);
    T(isochrone_tasks_cancel(NULL));T(isochrone_task_cancel(NULL));break;}
  case 5:{ /* cancel while a task goes on to have children */ s.function=parentc;T(isochrone_tasks_submit(t,&s,&h));usleep(100000);T(isochrone_tasks_cancel(t));T(isochrone_tasks_wait(t));printf("kids ran %d\n",ran);T(isochrone_tasks_wait(t));break;}
  case 6:{ /* another thread */ g=t;s.function=slow;for(int i=0;i<20;i++)isochrone_tasks_submit(t,&s,NULL);pthread_t p;pthread_create(&p,NULL,other_wait,NULL);pthread_join(p,NULL);break;}
  case 7:{ /* the starting thread ends */ pthread_t p;pthread_create(&p,NULL,starter,NULL);pthread_join(p,NULL);t=g;s.function=count;for(int i=0;i<100;i++)isochrone_tasks_submit(t,&s,NULL);T(isochrone_tasks_wait(t));printf("ran %d\n",ran);break;}
  case 8:{ /* fork */ static long a[4];T(isochrone_tasks_adopt(t,a,sizeof a,&d));s.function=count;for(int i=0;i<100;i++)isochrone_tasks_submit(t,&s,NULL);T(isochrone_tasks_wait(t));
    s.function=slow;for(int i=0;i<6;i++)isochrone_tasks_submit(t,&s,NULL);
    pid_t p=fork();if(!p){alarm(5);printf("child\n");T(isochrone_tasks_submit(t,&s,NULL));T(isochrone_tasks_wait(t));T(isochrone_tasks_end(t));
      isochrone_tasks*n;T(isochrone_tasks_start(&o,NULL,0,&n));T(isochrone_tasks_submit(n,&s,NULL));T(isochrone_tasks_end(n));_exit(0);}
    int st;waitpid(p,&st,0);printf("child ended %x\n",st);break;}
  case 9: s.function=exits;T(isochrone_tasks_submit(t,&s,NULL));usleep(100000);T(isochrone_tasks_wait(t));break;
  case 10:{ /* 10^6 tasks with handles, names */ static isochrone_handle hs[1000000];double b=now();uint32_t z;T(isochrone_tasks_data(t,8,&z));isochrone_range r={z,ISOCHRONE_INOUT,0,8};s.function=inc;s.name="inc";s.ranges=&r;s.count=1;
    for(int i=0;i<1000000;i++)if(isochrone_tasks_submit(t,&s,&hs[i])){printf("%s\n",isochrone_error());break;}
    printf("%.2f s\n",now()-b);for(int i=999999;i>=0;i-=1000)if(isochrone_tasks_wait_for(t,hs[i]))printf("?\n");const void*at;T(isochrone_tasks_read(t,z,0,8,&at));printf("%ld %.2f s\n",*(const long*)at,now()-b);break;}
  case 11: s.function=nested_run;T(isochrone_tasks_submit(t,&s,NULL));T(isochrone_tasks_wait(t));printf("%d\n",ran);break;
  case 12:{ /* names */ char n[32];for(int i=0;i<1500;i++){snprintf(n,32,"task %d",i);s.name=n;int e=isochrone_tasks_submit(t,&s,NULL);if(e){printf("%d at %d: %s\n",e,i,isochrone_error());break;}}
    s.name="\xff\xfe";T(isochrone_tasks_submit(t,&s,NULL));s.name="";T(isochrone_tasks_submit(t,&s,NULL));break;}
  case 13:{ g=t;s.function=slow;for(int i=0;i<60;i++)isochrone_tasks_submit(t,&s,NULL);pthread_t p;pthread_create(&p,NULL,other_cancel,NULL);double b=now();T(isochrone_tasks_wait(t));printf("%.2f\n",now()-b);pthread_join(p,NULL);break;}
  }
  T(isochrone_tasks_end(t));return 0;}
